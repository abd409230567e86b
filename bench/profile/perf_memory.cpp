// A class for each source of memory traffic, tables of memory controllers' events, and the order of trying sources.
#include "bench/profile/perf_memory.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "bench/profile/perf_events.h"
#include "bench/profile/perf_text.h"

namespace kbench {
namespace {

using namespace perf_events;
using namespace perf_text;

namespace fs = std::filesystem;

constexpr double cache_line_bytes = 64;  // on every x86; also what one CAS command moves (a DDR burst of 8 x 8 B)

/// A source, or why it failed and how far it came. If several ways to one source fail, the furthest is reported.
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
    std::string label;

    std::string source() const override {
        return fmt::format("{}: {} counters, the whole machine", label, read.size() + write.size());
    }
    void start() override {
        read.start();
        write.start();
    }
    Traffic stop() override { return {read.stop(), write.stop()}; }
};

/// An event of a memory controller by its name in sysfs or, where the kernel has no name for it, by its encoding.
struct MemoryEvent {
    EventSum ControllerTraffic::*sum;
    std::string_view name;
    std::string_view encoding = {};  ///< as sysfs would write it
};
constexpr auto reads = &ControllerTraffic::read, writes = &ControllerTraffic::write;

/// CAS commands of each of Intel's memory controllers: names of the driver arch/x86/events/intel/uncore_{snb,snbep}.c.
constexpr MemoryEvent cas_events[] = {{reads, "cas_count_read"}, {writes, "cas_count_write"}};
constexpr MemoryEvent cas_by_scheduler_events[] = {{reads, "cas_count_read_sch0"},
                                                   {reads, "cas_count_read_sch1"},
                                                   {writes, "cas_count_write_sch0"},
                                                   {writes, "cas_count_write_sch1"}};
constexpr MemoryEvent client_events[] = {{reads, "data_reads"}, {writes, "data_writes"}};
constexpr MemoryEvent client_free_running_events[] = {{reads, "data_read"}, {writes, "data_write"}};
constexpr MemoryEvent free_running_events[] = {{reads, "read"}, {writes, "write"}};
/// Events of Sapphire and Emerald Rapids, for kernels before 2023, which name none; the encodings are those of
/// tools/perf/pmu-events/arch/x86/sapphirerapids in the Linux source.
constexpr MemoryEvent sapphire_rapids_events[] = {{reads, "UNC_M_CAS_COUNT.RD", "event=0x05,umask=0xcf"},
                                                  {writes, "UNC_M_CAS_COUNT.WR", "event=0x05,umask=0xf0"}};
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

constexpr MemoryPmu memory_pmus[] = {{"uncore_imc", cas_events},
                                     {"uncore_imc", cas_by_scheduler_events},
                                     {"uncore_imc", client_events},
                                     {"uncore_imc", sapphire_rapids_events, 6, {143, 207}},
                                     {"uncore_imc_free_running", free_running_events},
                                     {"uncore_imc_free_running", client_free_running_events}};

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
bool encode_term(PerfSystem& system, const fs::path& pmu, std::string_view term, PerfEventSpec& spec) {
    const std::size_t equals = term.find('=');
    const std::string name(term.substr(0, equals));
    const auto value = equals == term.npos ? std::optional<std::uint64_t>(1) : parse_integer(term.substr(equals + 1));
    const std::string layout = system.text(pmu / "format" / name).value_or(name + ":0-63");  // "config=0x1234" has none
    const std::size_t colon = std::min(layout.find(':'), layout.size() - 1);
    const auto ranges = parse_ranges(std::string_view(layout).substr(colon + 1));
    const std::string_view field = std::string_view(layout).substr(0, colon);
    std::uint64_t* target = field == "config"    ? &spec.config
                            : field == "config1" ? &spec.config1
                            : field == "config2" ? &spec.config2
                                                 : nullptr;
    return value && ranges && target != nullptr && deposit(*value, *ranges, *target);
}

/// None where the PMU cannot have such an event.
std::optional<PerfEventSpec> encode(PerfSystem& system, const fs::path& pmu, std::string_view event) {
    PerfEventSpec spec;
    const auto type = parse_integer(system.text(pmu / "type").value_or(""));
    if (!type) return std::nullopt;
    spec.type = static_cast<std::uint32_t>(*type);
    for (const std::string_view term : split(event, ','))
        if (!encode_term(system, pmu, trim(term), spec)) return std::nullopt;
    return spec;
}

/// Bytes of one count by the files NAME.scale and NAME.unit; a count without them is one command of 64 B.
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

/// Opens one event on one PMU, for each package. The returned attempt has the reason if it failed.
Attempt open_memory_event(PerfSystem& system, const fs::path& pmu, const MemoryEvent& event, EventSum& sum) {
    const fs::path file = pmu / "events" / event.name;
    const std::string name = fmt::format("{}/{}", pmu.filename().string(), event.name);
    const auto named = system.text(file);
    if (!named && event.encoding.empty()) return failed(no_event, name + " is not in sysfs");
    const auto bytes = bytes_per_count(system, file);
    if (!bytes) return failed(not_opened, name + " is in no known unit of bytes");
    const std::vector<int> cpus = parse_cpus(system.text(pmu / "cpumask").value_or(""));
    if (cpus.empty()) return failed(not_opened, pmu.filename().string() + " has no cpumask");
    const auto spec = encode(system, pmu, named ? *named : event.encoding);
    if (!spec) return failed(no_event, name + " cannot be encoded for this PMU");
    for (const int cpu : cpus) {
        const int fd = system.open(*spec, -1, cpu);
        if (fd < 0) return failed(not_opened, open_failure(system, -fd, whole_machine, name + " does not open"));
        sum.add(PerfFd(system, fd), *bytes);
    }
    return {};
}

/// Opens all events on all PMUs of one row, as some of them would count only some of the traffic.
Attempt open_memory_pmu(PerfSystem& system, const MemoryPmu& row) {
    const std::vector<fs::path> found = numbered_pmus(system, row.pmu);
    if (found.empty()) return failed(no_pmu, fmt::format("no {} in {} (virtual machine?)", row.pmu, pmus.string()));
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

Attempt open_controllers(PerfSystem& system) {
    const Cpu cpu = read_cpu(system);
    if (cpu.vendor != "GenuineIntel")
        return failed(no_pmu, "this CPU's memory counters are not supported: kbench knows those of Intel only");
    Attempt best = failed(-1, "");
    for (const MemoryPmu& row : memory_pmus) {
        if (!row.fits(cpu)) continue;
        Attempt attempt = open_memory_pmu(system, row);
        if (attempt.counter) return attempt;
        if (attempt.progress > best.progress) best = std::move(attempt);
    }
    return best;
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
        return {bytes, unknown};
    }
};

/// Generic "cache misses" are the last level's on Intel only (Intel SDM volume 3B, Architectural Performance
/// Monitoring, event 2EH/41H): AMD's count L2, Arm's L1. What the kernel calls last level is L2 on AMD's CPUs before
/// Zen, and nothing since (arch/x86/events/amd/core.c in the Linux source).
std::vector<PerfEventSpec> miss_events(const Cpu& cpu) {
    std::vector<PerfEventSpec> events;
    if (cpu.vendor == "GenuineIntel") events.push_back({PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES});
    if (cpu.vendor != "AuthenticAMD")
        events.push_back({PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_LL | (PERF_COUNT_HW_CACHE_OP_READ << 8) |
                                                  (PERF_COUNT_HW_CACHE_RESULT_MISS << 16)});
    return events;
}

Attempt open_misses(PerfSystem& system) {
    if (hybrid(system)) return failed(0, std::string(is_hybrid));
    int error = ENOENT;
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
constexpr Rung ladder[] = {{"memory controllers", open_controllers}, {"last-level-cache misses", open_misses}};

}  // namespace

std::unique_ptr<TrafficCounter> open_traffic(PerfSystem& system, std::vector<std::string>& why_not) {
    for (const Rung& rung : ladder) {
        Attempt attempt = rung.open(system);
        if (attempt.counter) return std::move(attempt.counter);
        why_not.push_back(fmt::format("{}: {}", rung.name, attempt.why_not));
    }
    return nullptr;
}

}  // namespace kbench
