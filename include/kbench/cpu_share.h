// How much of the CPU time that a process wanted it did not get. Where much is missing, its times describe the host's
// other load, a quota or a hypervisor, and not the code that was measured.
//
//     kbench::CpuShare share;
//     share.steal_share = kbench::Quantity::measured(0.3);
//     share.lacked();   // 0.3
//     share.starved();  // true: no verdict may follow from such samples
#pragma once

#include <algorithm>
#include <optional>

#include "kbench/quantity.h"

namespace kbench {

/// The largest share that may be missing. Threads wait for the slowest one, so a thread without its CPU for 5 % of the
/// time makes the whole 5 % longer, enough to confuse two roofs. An idle host takes below 1 % (timers, kernel threads).
inline constexpr double most_lacked_share = 0.05;

/// CPU time that the process wanted, while the samples that were kept were taken. Shares are from 0 to 1.
struct CpuShare {
    /// Share of the time that the worker thread which waited most spent in a run queue.
    Quantity waited_share;
    Quantity steal_share;      ///< time that went to other guests, over the time the host's CPUs wanted to run
    Quantity throttled_share;  ///< time that a quota held CPUs back over that time plus the time that the process ran
    Quantity throttled_periods, quota_periods;  ///< counts of the quota that throttled the most
    Quantity involuntary_switches;              ///< how often the kernel took a CPU away from any thread
    Quantity load;                              ///< the host's 1-minute average at the end, with these threads
    Quantity pressure_share;                    ///< share of the time in which any task of the host waited for a CPU
    int starved_samples = 0;                    ///< samples that were discarded and repeated

    /// The largest share of the wanted CPU time that was missing; nothing where no share is known.
    std::optional<double> lacked() const {
        std::optional<double> most;
        for (const Quantity* share : {&waited_share, &steal_share, &throttled_share})
            if (share->value) most = std::max(most.value_or(0), *share->value);
        return most;
    }
    bool starved() const { return lacked().value_or(0) > most_lacked_share; }
};

}  // namespace kbench
