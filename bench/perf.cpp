// One class for events that add up to a figure; on it one class a source of traffic; then the ladder as a table.
#include "bench/perf.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "bench/perf_text.h"

namespace kbench {
namespace {

using namespace perf_text;

namespace fs = std::filesystem;

constexpr double cache_line_bytes = 64;  // of every x86; also what one CAS command moves (a DDR burst of 8 x 8 B)
const fs::path pmus = "/sys/bus/event_source/devices";

struct Cpu {
    std::string vendor;
    std::uint64_t family = 0, model = 0;
};

Cpu read_cpu(PerfSystem& system) {
    Cpu cpu;
    const std::string text = system.text("/proc/cpuinfo").value_or("");
    for (const std::string_view line : split(text, '\n')) {
        const std::size_t colon = line.find(':');
        if (colon == line.npos) break;  // the end of the first CPU
        const std::string_view key = trim(line.substr(0, colon)), value = trim(line.substr(colon + 1));
        if (key == "vendor_id") cpu.vendor = value;
        if (key == "cpu family") cpu.family = parse_integer(value).value_or(0);
        if (key == "model") cpu.model = parse_integer(value).value_or(0);
    }
    return cpu;
}

// ---- Reasons

std::string error_text(long error) { return std::generic_category().message(static_cast<int>(error)); }

/// Who is counted decides what perf_event_paranoid must be at most (Documentation/admin-guide/perf-security.rst).
struct Scope {
    int paranoid;
    std::string_view what;
};
constexpr Scope own_threads{2, "its own threads"}, whole_machine{0, "memory controllers"};

std::string refusal(PerfSystem& system, int error, const Scope& scope) {
    const std::string setting = system.text("/proc/sys/kernel/perf_event_paranoid").value_or("unknown");
    const auto digits = setting.starts_with('-') ? std::nullopt : parse_integer(setting);
    if (digits && *digits > static_cast<std::uint64_t>(scope.paranoid))
        return fmt::format(
            "perf_event_paranoid is {}: kbench needs {} or less, or CAP_PERFMON, to count {}; fix: sysctl "
            "kernel.perf_event_paranoid={}",
            setting, scope.paranoid, scope.what, scope.paranoid);
    return fmt::format(
        "perf_event_open is refused ({}) although perf_event_paranoid is {}: a container's seccomp filter? fix: give "
        "it CAP_PERFMON",
        error_text(error), setting);
}

/// Why perf_event_open failed, where `missing` says what it means that there is no such event.
std::string open_failure(PerfSystem& system, int error, const Scope& scope, std::string_view missing) {
    switch (error) {
        case EACCES:
        case EPERM: return refusal(system, error, scope);
        case ENOENT:
        case EOPNOTSUPP:
        case ENODEV:
        case ENXIO: return std::string(missing);
        case ENOSYS: return "this kernel has no perf_event_open";
        case EMFILE: return "too many open files for one counter a thread; fix: raise ulimit -n";
        default: return fmt::format("perf_event_open: {}", error_text(error));
    }
}

constexpr std::string_view no_core_pmu = "this machine exposes no core PMU (virtual machine?)";

// ---- Events

class PerfFd {
  public:
    PerfFd(PerfSystem& system, int fd) : system_(&system), fd_(fd) {}
    PerfFd(PerfFd&& other) noexcept : system_(other.system_), fd_(std::exchange(other.fd_, -1)) {}
    PerfFd& operator=(PerfFd&& other) noexcept {
        std::swap(system_, other.system_);
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~PerfFd() {
        if (fd_ >= 0) system_->close(fd_);
    }
    long read(PerfReading& reading) const { return system_->read(fd_, reading); }

  private:
    PerfSystem* system_;
    int fd_;
};

/// Counters may wrap, which unsigned subtraction undoes; none where one went back.
std::optional<double> difference(std::uint64_t before, std::uint64_t after) {
    const std::uint64_t rise = after - before;
    return rise >> 63 == 0 ? std::optional(static_cast<double>(rise)) : std::nullopt;
}

/// What the events of a sum count, as far as it decides which readings can be true.
struct EventRules {
    std::string_view name;
    bool of_threads;  ///< time stands still for an event whose thread sleeps; for one of a CPU it cannot
    bool may_be_zero;
};

/// Events of one kind on several CPUs or threads, which add up to one figure.
class EventSum {
  public:
    explicit EventSum(const EventRules& rules) : rules_(rules) {}

    void add(PerfFd fd, double scale) { events_.push_back({std::move(fd), scale, {}}); }
    bool empty() const { return events_.empty(); }
    std::size_t size() const { return events_.size(); }

    void start() {
        trouble_.clear();
        for (Event& event : events_) take(event, event.before);
        start_trouble_ = trouble_;
    }

    /// The sum since start() of each count times its scale.
    Quantity stop() {
        trouble_ = start_trouble_;
        enabled_ns_ = running_ns_ = 0;
        double sum = 0, since_open = 0;
        for (Event& event : events_) {
            PerfReading now;
            if (trouble_.empty() && take(event, now)) sum += rise(event, now);
            since_open += static_cast<double>(now.value);
        }
        if (!trouble_.empty()) return Quantity::unavailable(trouble_);
        if (since_open == 0) return unavailable("has counted nothing since it was opened (virtual machine?)");
        if (sum == 0 && !rules_.may_be_zero) return unavailable("counted nothing");
        return labelled(sum);
    }

    /// Seconds that the events were enabled between the last start() and stop(), summed: of events of threads, their
    /// time on a core.
    double enabled_s() const { return enabled_ns_ * 1e-9; }

  private:
    struct Event {
        PerfFd fd;
        double scale;
        PerfReading before;
    };

    /// Reads one event; where that fails, what is wrong stays in trouble_.
    bool take(const Event& event, PerfReading& reading) {
        const long bytes = event.fd.read(reading);
        if (bytes == static_cast<long>(sizeof reading)) return true;
        trouble_ = bytes < 0 ? fmt::format("{} cannot be read: {}", rules_.name, error_text(-bytes))
                             : fmt::format("{} gave {} of {} bytes", rules_.name, bytes, sizeof reading);
        return false;
    }

    /// What one event adds; where it is not known, what is wrong stays in trouble_.
    double rise(const Event& event, const PerfReading& now) {
        const auto value = difference(event.before.value, now.value);
        const auto enabled = difference(event.before.enabled_ns, now.enabled_ns);
        const auto running = difference(event.before.running_ns, now.running_ns);
        if (!value || !enabled || !running) {
            trouble_ = fmt::format("{} went back", rules_.name);
        } else if (*enabled == 0 && !rules_.of_threads) {
            trouble_ = fmt::format("{}: its clock stood still", rules_.name);
        } else if (*enabled > 0 && *running == 0) {
            trouble_ = fmt::format("{} was never counted: other events held its counters", rules_.name);
        } else if (*enabled > 0) {
            enabled_ns_ += *enabled;
            running_ns_ += std::min(*running, *enabled);
            return *value * event.scale * std::max(1.0, *enabled / *running);
        }
        return 0;
    }

    Quantity labelled(double sum) const {
        const double share = running_ns_ / enabled_ns_;
        if (share > 0.999 || enabled_ns_ == 0) return Quantity::measured(sum);
        const std::string reason =
            fmt::format("{} was counted {:.0f} % of the time and scaled up", rules_.name, share * 100);
        return {sum, Origin::estimated, reason};
    }

    Quantity unavailable(std::string_view what) const {
        return Quantity::unavailable(fmt::format("{} {}", rules_.name, what));
    }

    EventRules rules_;
    std::vector<Event> events_;
    std::string trouble_, start_trouble_ = "start() was not called";
    double enabled_ns_ = 0, running_ns_ = 0;
};

/// Adds an event for every thread of this process; 0, or the errno that says why not.
int open_threads(PerfSystem& system, PerfEventSpec spec, double scale, EventSum& sum) {
    spec.user_only = spec.inherit = true;  // what perf_event_paranoid 2, the kernel's default, allows
    for (const int thread : system.threads()) {
        const int fd = system.open(spec, thread, -1);
        if (fd >= 0)
            sum.add(PerfFd(system, fd), scale);
        else if (fd != -ESRCH)
            return -fd;  // a thread that has just ended is no loss
    }
    return sum.empty() ? ESRCH : 0;
}

/// Cycles of two kinds of core do not add up, and a plain event counts one kind only (perf_event_open(2), config).
bool hybrid(PerfSystem& system) { return system.exists(pmus / "cpu_core") && system.exists(pmus / "cpu_atom"); }
constexpr std::string_view is_hybrid = "this CPU has two kinds of core, and a plain event counts one of them";

Quantity quotient(const Quantity& numerator, const Quantity& denominator, double scale) {
    for (const Quantity* part : {&numerator, &denominator})
        if (!part->value) return Quantity::unavailable(part->reason);
    if (*denominator.value <= 0) return Quantity::unavailable("nothing ran");
    const double value = *numerator.value / *denominator.value * scale;
    for (const Quantity* part : {&numerator, &denominator})
        if (part->origin == Origin::estimated) return {value, Origin::estimated, part->reason};
    return Quantity::derived(value);
}

/// The sum; as unsure as the less sure part.
Quantity total(const Quantity& a, const Quantity& b) {
    for (const Quantity* part : {&a, &b})
        if (!part->value) return *part;
    Quantity sum = a.origin == Origin::estimated ? a : b;
    sum.value = *a.value + *b.value;
    return sum;
}

}  // namespace

// ---- Core counters

class ThreadCounters {
  public:
    EventSum cycles{{"cycles", true, false}}, instructions{{"instructions", true, false}};
};

namespace {

/// Null with the reason where this process cannot count its threads.
std::unique_ptr<ThreadCounters> open_core(PerfSystem& system, std::string& why_not) {
    if (hybrid(system)) {
        why_not = is_hybrid;
        return nullptr;
    }
    auto counters = std::make_unique<ThreadCounters>();
    int error = open_threads(system, {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}, 1, counters->cycles);
    if (error == 0)
        error = open_threads(system, {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}, 1, counters->instructions);
    if (error == 0) return counters;
    why_not = open_failure(system, error, own_threads, no_core_pmu);
    return nullptr;
}

}  // namespace

// ---- Sources of traffic

struct Traffic {
    Quantity read, write, both;  ///< bytes
};

class TrafficCounter {
  public:
    virtual ~TrafficCounter() = default;
    virtual std::string source() const = 0;
    virtual void start() = 0;
    virtual Traffic stop() = 0;
};

namespace {

/// A source, or why it failed and how far it had come: of several ways to one source the furthest is worth telling.
struct Attempt {
    std::unique_ptr<TrafficCounter> counter;
    int progress = 0;
    std::string why_not;
};

Attempt failed(int progress, std::string why_not) { return {nullptr, progress, std::move(why_not)}; }

/// Memory controllers, which count for the whole machine.
class ControllerTraffic final : public TrafficCounter {
  public:
    EventSum read{{"DRAM reads", false, true}}, write{{"DRAM writes", false, true}};
    EventSum both{{"DRAM reads and writes", false, true}};  ///< where the hardware does not tell them apart
    std::string label;

    std::string source() const override {
        return fmt::format("{}: {} counters, the whole machine", label, read.size() + write.size() + both.size());
    }
    void start() override {
        for (EventSum* sum : {&read, &write, &both}) sum->start();
    }
    Traffic stop() override {
        if (!both.empty()) {
            const Quantity unknown = Quantity::unavailable(label + " counts reads and writes together");
            return {unknown, unknown, both.stop()};
        }
        Traffic traffic{read.stop(), write.stop(), {}};
        traffic.both = total(traffic.read, traffic.write);
        return traffic;
    }
};

/// An event of a memory controller by its name in sysfs or, where the kernel has no name for it, by its encoding.
struct MemoryEvent {
    EventSum ControllerTraffic::*sum;
    std::string_view name;
    std::string_view encoding = {};  ///< as sysfs would write it
    unsigned copies = 1;             ///< the same event of so many channels, 0x40 apart
    bool between_packages = false;   ///< nothing to count where there is only one package
};
constexpr auto reads = &ControllerTraffic::read, writes = &ControllerTraffic::write, both = &ControllerTraffic::both;

/// CAS commands of every memory controller: names of the driver arch/x86/events/intel/uncore_{snb,snbep}.c.
constexpr MemoryEvent cas_events[] = {{reads, "cas_count_read"}, {writes, "cas_count_write"}};
constexpr MemoryEvent cas_by_scheduler_events[] = {{reads, "cas_count_read_sch0"},
                                                   {reads, "cas_count_read_sch1"},
                                                   {writes, "cas_count_write_sch0"},
                                                   {writes, "cas_count_write_sch1"}};
constexpr MemoryEvent client_events[] = {{reads, "data_reads"}, {writes, "data_writes"}};
constexpr MemoryEvent client_free_running_events[] = {{reads, "data_read"}, {writes, "data_write"}};
constexpr MemoryEvent free_running_events[] = {{reads, "read"}, {writes, "write"}};
/// Of Sapphire and Emerald Rapids, for kernels that name no events of theirs (before 2023); encodings of
/// tools/perf/pmu-events/arch/x86/sapphirerapids in the Linux source.
constexpr MemoryEvent sapphire_rapids_events[] = {{reads, "UNC_M_CAS_COUNT.RD", "event=0x05,umask=0xcf"},
                                                  {writes, "UNC_M_CAS_COUNT.WR", "event=0x05,umask=0xf0"}};
/// AMD's have no names in sysfs: encodings of tools/perf/pmu-events/arch/x86/amdzen{1,4,5} in the Linux source.
constexpr MemoryEvent umc_events[] = {{reads, "umc_cas_cmd.rd", "event=0x0a,rdwrmask=0x1"},
                                      {writes, "umc_cas_cmd.wr", "event=0x0a,rdwrmask=0x2"}};
constexpr MemoryEvent zen5_df_events[] = {
    {reads, "local_or_remote_socket_read_data_beats_dram", "event=0x1f,umask=0xffe", 12},
    {writes, "local_or_remote_socket_write_data_beats_dram", "event=0x1f,umask=0xfff", 12}};
constexpr MemoryEvent zen4_df_events[] = {
    {reads, "local_processor_read_data_beats_cs", "event=0x1f,umask=0x7fe", 12},
    {reads, "remote_processor_read_data_beats_cs", "event=0x1f,umask=0xbfe", 12, true},
    {writes, "local_processor_write_data_beats_cs", "event=0x1f,umask=0x7ff", 12},
    {writes, "remote_processor_write_data_beats_cs", "event=0x1f,umask=0xbff", 12, true}};
constexpr MemoryEvent zen1_df_events[] = {{both, "dram_channel_data_controller", "event=0x07,umask=0x38", 8}};

/// Events of one kind of PMU; `family` and `models` (CPUID) where an encoding holds for those CPUs only.
struct MemoryPmu {
    std::string_view pmu;
    std::span<const MemoryEvent> events;
    std::uint64_t family = 0;
    std::array<std::uint64_t, 2> models{};

    bool fits(const Cpu& cpu) const {
        const bool any_model = models[0] == 0;
        return (family == 0 || family == cpu.family) &&
               (any_model || std::find(models.begin(), models.end(), cpu.model) != models.end());
    }
};

/// Zen 4's umask has more bits than Zen 3's, which is of the same family and therefore comes behind it.
constexpr MemoryPmu intel_pmus[] = {{"uncore_imc", cas_events},
                                    {"uncore_imc", cas_by_scheduler_events},
                                    {"uncore_imc", client_events},
                                    {"uncore_imc", sapphire_rapids_events, 6, {143, 207}},
                                    {"uncore_imc_free_running", free_running_events},
                                    {"uncore_imc_free_running", client_free_running_events}};
constexpr MemoryPmu amd_pmus[] = {{"amd_umc", umc_events},
                                  {"amd_df", zen5_df_events, 26},
                                  {"amd_df", zen4_df_events, 25},
                                  {"amd_df", zen1_df_events, 25},
                                  {"amd_df", zen1_df_events, 23}};

/// PMUs whose name is `name`, or `name`, "_" and a number.
std::vector<fs::path> numbered_pmus(PerfSystem& system, std::string_view name) {
    std::vector<fs::path> found;
    for (const std::string& entry : system.entries(pmus)) {
        if (!entry.starts_with(name)) continue;
        const std::string_view rest = std::string_view(entry).substr(name.size());
        const bool number = rest.starts_with('_') && parse_integer(rest.substr(1));
        if (rest.empty() || number) found.push_back(pmus / entry);
    }
    return found;
}

/// Puts the low bits of `value` into the bits of `field` that the ranges name, lowest first; false when some are left.
bool deposit(std::uint64_t value, const std::vector<Range>& ranges, std::uint64_t& field) {
    for (const Range& range : ranges)
        for (unsigned bit = range.first; bit <= range.last && bit < 64; ++bit, value >>= 1) field |= (value & 1) << bit;
    return value == 0;
}

/// Sets one term ("umask=0x0f") as the PMU's format directory lays it out ("config:8-15").
bool encode_term(PerfSystem& system, const fs::path& pmu, std::string_view term, std::uint64_t extra,
                 PerfEventSpec& spec) {
    const std::size_t equals = term.find('=');
    const std::string name(term.substr(0, equals));
    const auto value = equals == term.npos ? std::optional<std::uint64_t>(1) : parse_integer(term.substr(equals + 1));
    const std::string format = system.text(pmu / "format" / name).value_or(name + ":0-63");  // "config=0x1234" has none
    const std::size_t colon = std::min(format.find(':'), format.size() - 1);
    const auto ranges = parse_ranges(std::string_view(format).substr(colon + 1));
    const std::string_view field = std::string_view(format).substr(0, colon);
    std::uint64_t* target = field == "config"    ? &spec.config
                            : field == "config1" ? &spec.config1
                            : field == "config2" ? &spec.config2
                                                 : nullptr;
    return value && ranges && target != nullptr && deposit(*value + (name == "event" ? extra : 0), *ranges, *target);
}

/// `extra` is added to the event code. None where the PMU cannot have such an event.
std::optional<PerfEventSpec> encode(PerfSystem& system, const fs::path& pmu, std::string_view event,
                                    std::uint64_t extra) {
    PerfEventSpec spec;
    const auto type = parse_integer(system.text(pmu / "type").value_or(""));
    if (!type) return std::nullopt;
    spec.type = static_cast<std::uint32_t>(*type);
    for (const std::string_view term : split(event, ','))
        if (!encode_term(system, pmu, trim(term), extra, spec)) return std::nullopt;
    return spec;
}

/// Bytes of one count by the files NAME.scale and NAME.unit; a count without them is one command or beat of 64 B.
std::optional<double> bytes_per_count(PerfSystem& system, const fs::path& event) {
    constexpr std::pair<std::string_view, double> units[] = {
        {"Bytes", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
    const auto scale = system.text(event.string() + ".scale"), unit = system.text(event.string() + ".unit");
    if (!scale && !unit) return cache_line_bytes;
    const auto factor = scale ? parse_real(*scale) : 1;
    const auto known = std::find_if(std::begin(units), std::end(units),
                                    [&unit](const auto& entry) { return unit && entry.first == *unit; });
    if (!factor || *factor <= 0 || known == std::end(units)) return std::nullopt;
    return *factor * known->second;
}

/// How far an attempt at a memory controller came.
enum Progress { no_pmu, no_event, not_opened };

/// Opens one event on one PMU, for each package and channel. The returned attempt has the reason if it failed.
Attempt open_memory_event(PerfSystem& system, const fs::path& pmu, const MemoryEvent& event, EventSum& sum) {
    const fs::path file = pmu / "events" / event.name;
    const std::string name = fmt::format("{}/{}", pmu.filename().string(), event.name);
    const auto named = system.text(file);
    if (!named && event.encoding.empty()) return failed(no_event, name + " is not in sysfs");
    const auto bytes = bytes_per_count(system, file);
    if (!bytes) return failed(not_opened, name + " is in no known unit of bytes");
    const std::vector<int> cpus = parse_cpus(system.text(pmu / "cpumask").value_or(""));
    if (cpus.empty()) return failed(not_opened, pmu.filename().string() + " has no cpumask");
    if (event.between_packages && cpus.size() == 1) return {};
    for (unsigned copy = 0; copy < event.copies; ++copy) {
        const auto spec = encode(system, pmu, named ? *named : event.encoding, std::uint64_t{0x40} * copy);
        if (!spec) return failed(no_event, name + " cannot be encoded for this PMU");
        for (const int cpu : cpus) {
            const int fd = system.open(*spec, -1, cpu);
            if (fd < 0) return failed(not_opened, open_failure(system, -fd, whole_machine, name + " does not open"));
            sum.add(PerfFd(system, fd), *bytes);
        }
    }
    return {};
}

/// All events on all PMUs of one row: a part of them would count a part of the traffic.
Attempt open_memory_pmu(PerfSystem& system, const MemoryPmu& row) {
    const std::vector<fs::path> found = numbered_pmus(system, row.pmu);
    if (found.empty())
        return failed(no_pmu,
                      fmt::format("no {} in {} (other hardware, or a virtual machine?)", row.pmu, pmus.string()));
    auto traffic = std::make_unique<ControllerTraffic>();
    traffic->label = row.pmu;
    for (const MemoryEvent& event : row.events) {
        traffic->label += fmt::format("{}{}", &event == row.events.data() ? " " : " + ", event.name);
        for (const fs::path& pmu : found) {
            Attempt attempt = open_memory_event(system, pmu, event, (*traffic).*event.sum);
            if (!attempt.why_not.empty()) return attempt;
        }
    }
    return {std::move(traffic), 0, {}};
}

Attempt first_of(PerfSystem& system, std::span<const MemoryPmu> rows) {
    const Cpu cpu = read_cpu(system);
    Attempt best = failed(-1, "no event is known for this CPU");
    for (const MemoryPmu& row : rows) {
        if (!row.fits(cpu)) continue;
        Attempt attempt = open_memory_pmu(system, row);
        if (attempt.counter) return attempt;
        if (attempt.progress > best.progress) best = std::move(attempt);
    }
    return best;
}

Attempt open_intel(PerfSystem& system) { return first_of(system, intel_pmus); }
Attempt open_amd(PerfSystem& system) { return first_of(system, amd_pmus); }

/// Memory Bandwidth Monitoring: bytes that a group of tasks moved between an L3 and memory, by L3.
class ResctrlTraffic final : public TrafficCounter {
  public:
    ResctrlTraffic(PerfSystem& system, std::vector<fs::path> files, std::string group)
        : system_(&system), files_(std::move(files)), group_(std::move(group)) {}

    std::string source() const override {
        return fmt::format("resctrl mbm_total_bytes: reads and writes together, of the tasks in {}", group_);
    }
    void start() override { before_ = values(); }
    Traffic stop() override {
        const Quantity unknown = Quantity::unavailable("resctrl counts reads and writes together");
        return {unknown, unknown, bytes()};
    }

    /// Empty when all files can be read; else which cannot, and what it says instead ("Unavailable", "Unassigned").
    std::string trouble() {
        for (const fs::path& file : files_) {
            const auto text = system_->text(file);
            if (!text) return file.string() + " cannot be read";
            if (!parse_integer(*text)) return fmt::format("{} says \"{}\"", file.string(), *text);
        }
        return {};
    }

  private:
    std::vector<std::uint64_t> values() {
        std::vector<std::uint64_t> values;
        for (const fs::path& file : files_)
            if (const auto value = parse_integer(system_->text(file).value_or(""))) values.push_back(*value);
        return values;
    }

    Quantity bytes() {
        const std::vector<std::uint64_t> now = values();
        if (before_.empty()) return Quantity::unavailable("resctrl: no value at start()");
        if (now.size() != files_.size()) return Quantity::unavailable("resctrl: " + trouble());
        if (before_.size() != files_.size()) return Quantity::unavailable("resctrl: a value was missing at start()");
        double sum = 0;
        for (std::size_t i = 0; i < now.size(); ++i) {
            const auto rise = difference(before_[i], now[i]);
            if (!rise) return Quantity::unavailable("resctrl: " + files_[i].string() + " went back");
            sum += *rise;
        }
        // The counters move in steps of some KiB: no step within the interval is not the same as no traffic.
        if (sum == 0) return Quantity::unavailable("resctrl: the interval is too short for its counters to move");
        return Quantity::measured(sum);
    }

    PerfSystem* system_;
    std::vector<fs::path> files_;
    std::string group_;
    std::vector<std::uint64_t> before_;
};

/// The directory of this process's monitoring group: its tasks are counted there and nowhere else but in the group
/// above. /proc/self/cpu_resctrl_groups has a line "res:" with the one and a line "mon:" with the other.
fs::path resctrl_group(PerfSystem& system) {
    fs::path group = "/sys/fs/resctrl";
    const std::string text = system.text("/proc/self/cpu_resctrl_groups").value_or("");
    for (const std::string_view line : split(text, '\n')) {
        const std::string_view name = trim(line.substr(std::min<std::size_t>(4, line.size())));
        if (name.empty() || name == "/") continue;
        if (line.starts_with("res:")) group /= name.starts_with('/') ? name.substr(1) : name;
        if (line.starts_with("mon:")) group = group / "mon_groups" / name;
    }
    return group;
}

Attempt open_resctrl(PerfSystem& system) {
    if (!system.exists("/sys/fs/resctrl")) return failed(0, "this CPU or kernel has none");
    if (system.entries("/sys/fs/resctrl").empty())
        return failed(0, "not mounted; fix: mount -t resctrl resctrl /sys/fs/resctrl");
    const fs::path group = resctrl_group(system), data = group / "mon_data";
    std::vector<fs::path> files;
    for (const std::string& domain : system.entries(data))
        if (const fs::path file = data / domain / "mbm_total_bytes";
            domain.starts_with("mon_L3_") && system.exists(file))
            files.push_back(file);
    if (files.empty())
        return failed(0, "no mbm_total_bytes in " + data.string() + ": this CPU does not monitor bandwidth");
    auto traffic = std::make_unique<ResctrlTraffic>(system, std::move(files), group.string());
    if (std::string trouble = traffic->trouble(); !trouble.empty()) return failed(0, std::move(trouble));
    return {std::move(traffic), 0, {}};
}

/// Lines that this process's cores fetched past the last-level cache.
class MissTraffic final : public TrafficCounter {
  public:
    EventSum read{{"last-level-cache misses", true, true}};

    std::string source() const override {
        return "last-level-cache misses x 64 B: reads of this process, a lower bound";
    }
    void start() override { read.start(); }
    Traffic stop() override {
        const Quantity unknown = Quantity::unavailable("last-level-cache misses say nothing of writes");
        Quantity bytes = read.stop();
        if (bytes.value) {
            const std::string scaled = bytes.origin == Origin::estimated ? "; " + bytes.reason : "";
            bytes.origin = Origin::estimated;
            bytes.reason = "last-level-cache misses times 64 B: a lower bound, without prefetches" + scaled;
        }
        return {bytes, unknown, unknown};
    }
};

/// Generic "cache misses" are the last level's on Intel only (Intel SDM volume 3B, Architectural Performance
/// Monitoring, event 2EH/41H): AMD's count L2, Arm's L1.
std::vector<PerfEventSpec> miss_events(const Cpu& cpu) {
    std::vector<PerfEventSpec> events;
    if (cpu.vendor == "GenuineIntel") events.push_back({PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES});
    events.push_back({PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_LL | (PERF_COUNT_HW_CACHE_OP_READ << 8) |
                                              (PERF_COUNT_HW_CACHE_RESULT_MISS << 16)});
    return events;
}

Attempt open_misses(PerfSystem& system) {
    if (hybrid(system)) return failed(0, std::string(is_hybrid));
    int error = 0;
    for (const PerfEventSpec& event : miss_events(read_cpu(system))) {
        auto traffic = std::make_unique<MissTraffic>();
        error = open_threads(system, event, cache_line_bytes, traffic->read);
        if (error == 0) return {std::move(traffic), 0, {}};
    }
    return failed(0, open_failure(system, error, own_threads, "no event for them in the core PMU, or no core PMU"));
}

struct Rung {
    std::string_view name;
    Attempt (*open)(PerfSystem&);
};
constexpr Rung ladder[] = {{"uncore_imc", open_intel},
                           {"amd_umc, amd_df", open_amd},
                           {"resctrl", open_resctrl},
                           {"last-level-cache misses", open_misses}};

constexpr std::string_view no_traffic =
    "no counter of memory traffic here: neither a memory controller's, nor resctrl, nor last-level-cache misses";

}  // namespace

// ---- HostCounters

Quantity core_clock_mhz(const HostCounts& counts) { return quotient(counts.cycles, counts.cpu_seconds, 1e-6); }
Quantity instructions_per_cycle(const HostCounts& counts) { return quotient(counts.instructions, counts.cycles, 1); }

HostCounters::HostCounters() = default;
HostCounters::HostCounters(HostCounters&&) noexcept = default;
HostCounters& HostCounters::operator=(HostCounters&&) noexcept = default;
HostCounters::~HostCounters() = default;

HostCounters HostCounters::open(PerfSystem& system) {
    HostCounters counters;
    for (const Rung& rung : ladder) {
        Attempt attempt = rung.open(system);
        counters.traffic_ = std::move(attempt.counter);
        if (counters.traffic_) break;
        counters.why_not_.push_back(fmt::format("{}: {}", rung.name, attempt.why_not));
    }
    counters.threads_ = open_core(system, counters.no_core_pmu_);
    if (!counters.threads_) counters.why_not_.push_back("core counters: " + counters.no_core_pmu_);
    return counters;
}

std::string HostCounters::traffic_source() const { return traffic_ ? traffic_->source() : ""; }

// The core counters are read nearest to the work: cycles between the readings of other counters are not the work's.
void HostCounters::start() {
    if (traffic_) traffic_->start();
    if (!threads_) return;
    threads_->instructions.start();
    threads_->cycles.start();
}

HostCounts HostCounters::stop() {
    HostCounts counts;
    counts.cycles = counts.instructions = counts.cpu_seconds = Quantity::unavailable(no_core_pmu_);
    if (threads_) {
        counts.cycles = threads_->cycles.stop();
        counts.instructions = threads_->instructions.stop();
        counts.cpu_seconds = counts.cycles.value ? Quantity::measured(threads_->cycles.enabled_s()) : counts.cycles;
    }
    Traffic traffic;
    if (traffic_)
        traffic = traffic_->stop();
    else
        traffic.read = traffic.write = traffic.both = Quantity::unavailable(std::string(no_traffic));
    counts.dram_read_bytes = std::move(traffic.read);
    counts.dram_write_bytes = std::move(traffic.write);
    counts.dram_bytes = std::move(traffic.both);
    return counts;
}

}  // namespace kbench
