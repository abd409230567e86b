// How much CPU time the control groups of this process allow it. Knows no device.
//
//     if (const auto quota = cpu_quota()) fmt::print("{} CPUs by {}", quota->cpus, quota->group.string());
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace kbench {

/// The folders that may limit this process's CPU time, its own group first, up to the outermost that is seen, of both
/// versions of cgroups. Their cpu.stat counts periods and throttled ones. `root` stands in front of all paths, for
/// tests.
std::vector<std::filesystem::path> cpu_cgroups(const std::filesystem::path& root = "/");

/// A limit of CPU time: the threads of a group run for so much of each period, then all of them wait for the next.
struct CpuQuota {
    double cpus = 0;              ///< CPU time over wall time: 0.5 is half of one CPU
    double period_s = 0;          ///< usually 0.1
    std::filesystem::path group;  ///< whose limit it is, as a folder
};

/// The smallest limit of this process's groups; nothing where none has one. cgroup v2: cpu.max; v1: cpu.cfs_quota_us
/// over cpu.cfs_period_us.
std::optional<CpuQuota> cpu_quota(const std::filesystem::path& root = "/");

}  // namespace kbench
