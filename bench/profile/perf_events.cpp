// What perf_event_open(2) refuses and why, and what the readings of several events add up to.
#include "bench/profile/perf_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

#include "bench/profile/perf_text.h"

namespace kbench::perf_events {
namespace {

using namespace perf_text;

std::string error_text(long error) { return std::generic_category().message(static_cast<int>(error)); }

std::string refusal(PerfSystem& system, int error, const Scope& scope) {
    const std::string setting = system.text("/proc/sys/kernel/perf_event_paranoid").value_or("unknown");
    const auto digits = setting.starts_with('-') ? std::nullopt : parse_integer(setting);
    if (digits && *digits > static_cast<std::uint64_t>(scope.paranoid))
        return fmt::format(
            "perf_event_paranoid is {}: kbench needs {} or less, or CAP_PERFMON, to count {}; fix: sysctl kernel.perf_event_paranoid={}",
            setting, scope.paranoid, scope.what, scope.paranoid);
    return fmt::format(
        "perf_event_open is refused ({}) although perf_event_paranoid is {}: a container's seccomp filter? fix: give it CAP_PERFMON",
        error_text(error), setting);
}

/// Counters may wrap, which unsigned subtraction undoes; none where one went back.
std::optional<double> difference(std::uint64_t before, std::uint64_t after) {
    const std::uint64_t rise = after - before;
    return rise >> 63 == 0 ? std::optional(static_cast<double>(rise)) : std::nullopt;
}

}  // namespace

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

bool hybrid(PerfSystem& system) { return system.exists(pmus / "cpu_core") && system.exists(pmus / "cpu_atom"); }

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

void EventSum::start() {
    trouble_.clear();
    for (Event& event : events_) take(event, event.before);
    start_trouble_ = trouble_;
}

Quantity EventSum::stop() {
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

bool EventSum::take(const Event& event, PerfReading& reading) {
    const long bytes = event.fd.read(reading);
    if (bytes == static_cast<long>(sizeof reading)) return true;
    trouble_ = bytes < 0 ? fmt::format("{} cannot be read: {}", rules_.name, error_text(-bytes))
                         : fmt::format("{} gave {} of {} bytes", rules_.name, bytes, sizeof reading);
    return false;
}

double EventSum::rise(const Event& event, const PerfReading& now) {
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

Quantity EventSum::labelled(double sum) const {
    const double share = running_ns_ / enabled_ns_;
    if (share > 0.999 || enabled_ns_ == 0) return Quantity::measured(sum);
    const std::string reason =
        fmt::format("{} was counted {:.0f} % of the time and scaled up", rules_.name, share * 100);
    return {sum, Origin::estimated, reason};
}

Quantity EventSum::unavailable(std::string_view what) const {
    return Quantity::unavailable(fmt::format("{} {}", rules_.name, what));
}

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

Quantity quotient(const Quantity& numerator, const Quantity& denominator, double scale) {
    for (const Quantity* part : {&numerator, &denominator})
        if (!part->value) return Quantity::unavailable(part->reason);
    if (*denominator.value <= 0) return Quantity::unavailable("nothing ran");
    const double value = *numerator.value / *denominator.value * scale;
    for (const Quantity* part : {&numerator, &denominator})
        if (part->origin == Origin::estimated) return {value, Origin::estimated, part->reason};
    return Quantity::derived(value);
}

Quantity total(const Quantity& a, const Quantity& b) {
    for (const Quantity* part : {&a, &b})
        if (!part->value) return *part;
    Quantity sum = a.origin == Origin::estimated ? a : b;
    sum.value = *a.value + *b.value;
    return sum;
}

}  // namespace kbench::perf_events
