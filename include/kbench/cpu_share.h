// How much of the CPU time that a process wanted it did not get. Its times then tell of the host's other work, of a
// quota or of a hypervisor, and not of what was measured.
#pragma once

#include <algorithm>
#include <optional>

#include "kbench/quantity.h"

namespace kbench {

/// Work on several threads waits for the last of them: one that lacks its CPU for 5 % of the time makes all of it 5 %
/// longer, which is what tells one roof from the next. An idle host takes below 1 % (timers, the kernel's own threads).
inline constexpr double most_lacked_share = 0.05;

/// While the samples that were kept were taken. Shares are from 0 to 1.
struct CpuShare {
    /// Of the time, for which one thread, the one with the most among those that worked, waited on a run queue.
    Quantity waited_share;
    Quantity steal_share;      ///< what the hypervisor gave to others of the time that the host's CPUs wanted to run
    Quantity throttled_share;  ///< time that a quota held CPUs back over that and the time that the process ran
    Quantity throttled_periods, quota_periods;  ///< of the quota that held the process back the most
    Quantity involuntary_switches;              ///< of all threads: the kernel took the CPU away
    Quantity load;                              ///< 1 minute's average of the host at the end, these threads in it
    Quantity pressure_share;                    ///< of the time, in which some task of the host waited for a CPU
    int starved_samples = 0;                    ///< discarded and repeated

    /// The largest share of the wanted CPU time that was not got; nothing where none is known.
    std::optional<double> lacked() const {
        std::optional<double> most;
        for (const Quantity* share : {&waited_share, &steal_share, &throttled_share})
            if (share->value) most = std::max(most.value_or(0), *share->value);
        return most;
    }
    bool starved() const { return lacked().value_or(0) > most_lacked_share; }
};

}  // namespace kbench
