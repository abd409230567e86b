// The cycle account: in which cycles SMs had no warp, issued, or had warps of which none could issue, as counters say,
// and what those warps waited for. It stands beside the roof times and takes nothing from them;
// docs/method.md has the arithmetic and what it cannot tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kbench {

/// Cycles without an issue for one reason, as a part of the step's time. Counters count waiting warps, not cycles, so
/// that is an interval; `share` is its point where warps wait alike in cycles with and without an issue.
struct LostCycles {
    std::string reason;  ///< as the counter has it, such as long_scoreboard
    double share = 0, low = 0, high = 0;
    /// The same by samples of such cycles, where these were taken; share, low and high are then 0 where warps were not
    /// counted.
    std::optional<double> sampled = std::nullopt;

    /// What to show and to order by.
    double best() const { return sampled.value_or(share); }
};

/// How far counts that should be equal are apart: their ratio less 1.
struct CountAgreement {
    double stalls = 0;    ///< warps by reason, summed, to resident warps
    double selected = 0;  ///< warps that issued to issues
    double eligible = 0;  ///< warps that issued or could have to eligible warps
};
/// Beyond this the reasons are withheld.
inline constexpr double agreement_tolerance = 0.03;

/// One step's; parts of the time of its kernels. no_warp + issuing + not_issuing = 1.
struct CycleAccount {
    std::string unavailable;  ///< why there is none; empty when there is one
    double time_us = 0;       ///< what the step's kernels took
    /// SM partitions without a warp; negative: more active cycles than the time holds at the run's clock.
    double no_warp = 0;
    double starts_us = 0;  ///< a part of that: kernels starting and ending, as empty ones do
    /// Parts of no_warp: before the first and after the last warp of the SM that has them longest, the launch and the
    /// drain of the kernel; and what the other SMs have less than that one. Not there where results have no such
    /// counter.
    std::optional<double> ends, uneven;
    double issuing = 0, not_issuing = 0;
    std::vector<LostCycles> lost;  ///< not_issuing by reason, the largest first
    bool has_bounds = false;       ///< the reasons have bounds, from counted warps
    std::string not_split;         ///< why there are no reasons
    std::optional<CountAgreement> cross_check;
};

/// Steps summed, microseconds: one op kind, one layer of all blocks, or the model.
struct CycleGroup {
    std::string name;
    std::size_t steps = 0;
    double time_us = 0;  ///< what the steps that have an account took
    double no_warp_us = 0, ends_us = 0, uneven_us = 0, issuing_us = 0, not_issuing_us = 0;
    double not_split_us = 0;       ///< the part of not_issuing_us whose reasons were withheld or not counted
    std::vector<LostCycles> lost;  ///< microseconds, the largest first
};

struct CycleAccounts {
    std::string unavailable;           ///< why there are none; empty when a step has one
    std::vector<CycleAccount> steps;   ///< by step, in order
    std::vector<CycleGroup> by_layer;  ///< the longest first
    CycleGroup total;
    double sampled_us = 0;  ///< time of steps with samples
    /// How many shares by samples lie outside of the counted bounds by more than a hundredth of the time, and how many
    /// were compared: those of reasons that both found to be noteworthy.
    std::size_t outside = 0, compared = 0;
    bool has_ends = false;    ///< all accounts have `ends` and `uneven`
    double uncounted_us = 0;  ///< time of steps without an account
    CountAgreement worst;     ///< the largest of each by magnitude
};

}  // namespace kbench
