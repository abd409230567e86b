// What the kernel has counted of this process's threads, of the quotas that hold it back and of the host, up to one
// moment; and what two moments say of the CPU time that the process did not get between them.
//
//     const CpuCountReader reader;
//     const CpuCounts before = reader.read();
//     work();
//     const CpuShare share = share_of(used(before, reader.read()));
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/cpu_quota.h"
#include "kbench/cpu_share.h"

namespace kbench {

/// One thread's time by the scheduler.
struct ThreadTime {
    double ran_s = 0, waited_s = 0;  ///< waited: able to run and on a run queue, also while a quota held it back
    double arrivals = 0;             ///< how often it came to a CPU
};

/// A quota's cpu.stat.
struct QuotaCounts {
    double periods = 0, throttled_periods = 0, throttled_s = 0;
};

/// A figure that is missing has its reason.
struct CpuCounts {
    double at_s = 0;  ///< by a clock that never goes back
    std::map<int, ThreadTime> threads;
    std::string no_threads;
    std::map<std::filesystem::path, QuotaCounts> quotas;  ///< by group
    std::string no_quotas;
    std::optional<double> steal_s, wanted_s;  ///< sums over the host's CPUs; wanted: not idle, steal in it
    double steal_step_s = 0;                  ///< both move in steps of as much: a tick for every CPU
    std::string no_steal;
    std::optional<double> involuntary_switches, pressure_s, load;
};

/// Differences of two counts, or sums of such.
struct CpuUse {
    double wall_s = 0;
    CpuCounts counts;  ///< at_s, load and the reasons are the last one's
};

CpuUse used(const CpuCounts& from, const CpuCounts& to);
void add(CpuUse& sum, const CpuUse& more);

/// What it means; starved_samples is left to whoever counts them.
CpuShare share_of(const CpuUse& use);

/// Reads /proc and cpu.stat: 60 us and 10 us for every thread (AMD EPYC, Linux 6.18), more on hosts with many CPUs.
class CpuCountReader {
  public:
    /// `root` stands in front of all paths, for tests.
    explicit CpuCountReader(const std::filesystem::path& root = "/");
    CpuCounts read() const;

  private:
    std::filesystem::path proc_;
    std::vector<std::filesystem::path> groups_;
};

}  // namespace kbench
