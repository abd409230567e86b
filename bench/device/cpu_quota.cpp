// What the files mean: Linux's admin-guide/cgroup-v2.rst (cpu.max) and scheduler/sched-bwc.rst.
#include "bench/device/cpu_quota.h"

#include <fstream>
#include <string>

#include "bench/device/control_groups.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

std::optional<CpuQuota> quota_of(double quota_us, double period_us, const fs::path& folder) {
    if (!(quota_us > 0) || !(period_us > 0)) return std::nullopt;  // -1: no limit
    return CpuQuota{quota_us / period_us, period_us * 1e-6, folder};
}

/// "20000 100000", or "max 100000" without a limit.
std::optional<CpuQuota> limit_of_v2(const fs::path& folder) {
    std::ifstream stream(folder / "cpu.max");
    double quota_us = 0, period_us = 0;
    if (!(stream >> quota_us >> period_us)) return std::nullopt;
    return quota_of(quota_us, period_us, folder);
}

std::optional<CpuQuota> limit_of_v1(const fs::path& folder) {
    const auto quota_us = number_in(folder / "cpu.cfs_quota_us"), period_us = number_in(folder / "cpu.cfs_period_us");
    if (!quota_us || !period_us) return std::nullopt;
    return quota_of(static_cast<double>(*quota_us), static_cast<double>(*period_us), folder);
}

}  // namespace

std::vector<fs::path> cpu_cgroups(const fs::path& root) {
    std::vector<fs::path> folders;
    for (const ControlGroup& group : control_groups("cpu", root)) folders.push_back(group.folder);
    return folders;
}

std::optional<CpuQuota> cpu_quota(const fs::path& root) {
    std::optional<CpuQuota> least;
    for (const ControlGroup& group : control_groups("cpu", root)) {
        const auto found = group.unified ? limit_of_v2(group.folder) : limit_of_v1(group.folder);
        if (found && (!least || found->cpus < least->cpus)) least = found;
    }
    return least;
}

}  // namespace kbench
