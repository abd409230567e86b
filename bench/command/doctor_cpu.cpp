// A function for each row of the table.
#include "bench/command/doctor_cpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/format.h"

namespace kbench {
namespace {

/// Less than this is what a quiet system does by itself.
constexpr double quiet_load = 0.5;

DoctorRow threads(const HostInfo& host) {
    const std::string from = host.threads_from.value_or(std::string(threads_from_cores));
    const std::string why = from == threads_from_cores ? "one a core" : "decided by " + from;
    if (!host.pinned)
        return {"cpu threads", doctor_warning,
                fmt::format("{}, {}; pinning was refused, so times vary more: allow sched_setaffinity",
                            plural(host.threads, "thread"), why)};
    return {"cpu threads", "ok",
            fmt::format("{} pinned, {}; --threads N chooses others", plural(host.threads, "thread"), why)};
}

DoctorRow affinity(const HostInfo& host) {
    const int all = host.machine_cpus.value_or(host.logical_cpus);
    if (all <= host.logical_cpus) return {"cpu affinity", "ok", "all of " + plural(all, "CPU")};
    return {
        "cpu affinity", doctor_warning,
        fmt::format(
            "{} of the machine's {} CPUs (an affinity mask or a cpuset): figures are of these; to measure the machine widen it: taskset, a scheduler's --cpus-per-task, a container's --cpuset-cpus",
            host.logical_cpus, all)};
}

DoctorRow quota_row(const HostInfo& host, const std::optional<CpuQuota>& quota) {
    if (!quota) return {"cpu quota", "ok", "none"};
    const std::string text = fmt::format("{:.3g} CPUs of time by {}", quota->cpus, quota->group.string());
    if (quota->cpus >= host.threads) return {"cpu quota", "ok", text + ", enough for the threads"};
    return {
        "cpu quota", doctor_warning,
        fmt::format(
            "{}, below {}: the kernel stops them for the rest of each {:.0f} ms; raise cpu.max or cpu.cfs_quota_us there (docker --cpus, Kubernetes limits.cpu, systemd CPUQuota)",
            text, plural(host.threads, "thread"), 1e3 * quota->period_s)};
}

DoctorRow load_row(const HostInfo& host, std::optional<double> load) {
    if (!load) return {"load average", "missing", "not told by this system: other work is not noticed here"};
    const std::string text = fmt::format("{:.2f} in the last minute, {}", *load,
                                         plural(host.machine_cpus.value_or(host.logical_cpus), "CPU"));
    if (*load < quiet_load) return {"load average", "ok", text};
    return {"load average", doctor_warning,
            text + ": other work takes CPU time and memory bandwidth from what is measured; wait or stop it (top)"};
}

DoctorRow governor(const HostInfo& host) {
    if (host.governor.empty())
        return {"cpu governor", "missing", "not told by this system, as in most virtual machines: clocks may move"};
    if (host.governor == "performance") return {"cpu governor", "ok", host.governor};
    return {"cpu governor", doctor_warning,
            host.governor + ": the clock follows the load; `cpupower frequency-set -g performance` keeps it up"};
}

}  // namespace

std::vector<DoctorRow> cpu_time_rows(const HostInfo& host, const std::optional<CpuQuota>& quota,
                                     std::optional<double> load) {
    return {threads(host), affinity(host), quota_row(host, quota), load_row(host, load), governor(host)};
}

bool has_fix(std::string_view reason) { return reason.find("fix: ") != std::string_view::npos; }

DoctorConclusion doctor_conclusion(std::span<const std::string> unusable, std::span<const std::string> mendable) {
    if (!unusable.empty()) return {fmt::format("cannot be used: {}", fmt::join(unusable, ", ")), ExitCode::device};
    if (mendable.empty()) return {"nothing to mend", ExitCode::success};
    return {fmt::format("to mend, as figures suffer: {}", fmt::join(mendable, ", ")), ExitCode::failed};
}

}  // namespace kbench
