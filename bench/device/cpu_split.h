// How a CPU's cores are divided between work and a thief beside it. Pure: the caller reads the machine.
#pragma once

#include <optional>
#include <string_view>

namespace kbench {

/// What a process has.
struct CoresForThief {
    int threads = 1;                   ///< those with which the work was timed
    int cores = 1;                     ///< physical ones that the process may use
    int sockets = 1;                   ///< on which these are
    bool pinned = true;                ///< whether threads stay on their CPUs
    std::optional<double> quota = {};  ///< CPU time that control groups allow, over wall time
};

/// Why there is no thief.
enum class NoThief { too_few_cores, threads_share_cores, several_sockets, not_pinned, quota };
/// A sentence's end: "no thief beside the work: " and this.
std::string_view text_of(NoThief why);

/// The work's threads are on the first cores, the thief's on the last.
struct CoreSplit {
    int work = 0, thief = 0;
    std::optional<NoThief> refused = {};
};

/// A thief has a quarter of the cores, which it needs to take 30 % of their bandwidth, or as many of those as can be
/// spared: first cores that the work leaves free, then up to a quarter of its own. With fewer it would be other work.
CoreSplit split_for_thief(const CoresForThief& has);

}  // namespace kbench
