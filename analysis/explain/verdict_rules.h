// The rule table of verdicts and the figures that it looks at. Internal to this folder and its tests; docs/method.md
// explains each rule.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/busy_unit.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/cycle_account.h"
#include "analysis/explain/interventions.h"
#include "analysis/explain/largest_cause.h"
#include "analysis/explain/roof_time.h"
#include "analysis/explain/verdict.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// What the rules look at: shares of the step's own time, as it was run.
struct VerdictFacts {
    double time_us = 0;
    double gap_share = 0;      ///< gaps, starting and ending kernels, over gap and step, without what records add
    double empty_share = 0;    ///< as many empty kernels' time over the step's
    double compute_share = 0;  ///< the longest roof time of a unit, at the run's clock, with executed extra work
    double memory_share = 0;   ///< the longest roof time of a memory level or of shared memory
    /// The longest roof time of a unit is of tensor cores, and that of a memory of shared memory, from which they are
    /// fed.
    bool is_fed_by_shared = false;
    double idle_share = 0;     ///< SMs without a warp
    double waiting_share = 0;  ///< SMs with warps, none issuing
    double rest_share = 0;     ///< above the roof time, not split
    /// What all roofs and starting kernels leave of it, if they worked one after another.
    double above_roofs_share = 0;
    std::int64_t time_steps = 1;  ///< one after another: see OpStruct
    std::optional<double> occupancy_pct;
    bool launched = false;       ///< kernels, and so gaps, were recorded
    bool empty_known = false;    ///< an empty kernel's time was measured
    bool compute_known = false;  ///< the unit has a roof, or the step no FLOPs
    bool memory_known = false;   ///< each level that has a roof has bytes and the other way round
    bool bytes_counted = false;  ///< DRAM's; else they are the cost model's, of which there may be more
    bool split = false;          ///< idle and waiting are known
    UnitActivity units;          ///< on a CPU nothing
    bool has_units = true;       ///< it ran on a GPU
    /// In nearly all of its time all blocks are resident at once, one an SM: their number is the kernel's design.
    bool one_block_an_sm = false;
    Influences taken;                             ///< what taking SMs and bandwidth away did
    bool causes_known = false;                    ///< its times by size were fitted
    double cause_share = 0;                       ///< the largest cause's, where it is certain which that is
    Bound cause_bound = Bound::not_identifiable;  ///< that cause's
};
/// What is known of one step.
struct StepGrounds {
    const StepFacts& facts;
    const StepRoofTimes& roof_times;
    const UnitActivity& units;
    const CycleAccount& cycles;
    Influences taken = {};
    std::optional<LargestCause> cause = {};
};
VerdictFacts facts_of(const StepGrounds& step);
/// The same with one figure after another at an end of its interval: roof times by roof, clock, count and what
/// recording adds to the time; cycles by the clock; units by the count.
std::vector<VerdictFacts> facts_within_errors(const StepGrounds& step, const VerdictFacts& facts);

/// A figure that was not measured as such: exact, a bound from one side, or none at all. unasked: the step has nothing
/// of what the rule is about.
enum class Known { exactly, at_most, at_least, no, unasked };

struct Rule {
    VerdictRule shown;  ///< its bound is that of the figures where that differs from step to step, see bound_of()
    double (*figure)(const VerdictFacts&);  ///< decides where it reaches the threshold ...
    bool (*applies)(const VerdictFacts&);   ///< ... and this holds
    Known (*known)(const VerdictFacts&);
    std::string_view overturned_by;  ///< like VerdictRule::what
};
/// A rule's words with the thresholds that they name in braces; `threshold`: the rule's own.
std::string with_thresholds(std::string_view text, double threshold);

/// Rules of a step, in order: the first that holds decides, and the last always does.
std::span<const Rule> step_rules();
const Rule& deciding_rule(const VerdictFacts& facts);
/// The rule of that id; there must be one.
const VerdictRule& rule_called(std::string_view id);
/// What a rule says of these figures.
Bound bound_of(const Rule& rule, const VerdictFacts& facts);
/// The rule of the largest cause.
const Rule& cause_rule();
/// The rule of a step whose figures decide for one bound, and within their intervals for another one as well.
const Rule& error_rule();
/// Rules of a layer or the model: model-gaps and model-cause (the model only), majority, no-majority, host-wait (a
/// program only), in this order.
std::span<const VerdictRule> model_rules();
inline const VerdictRule& majority_rule() { return model_rules()[2]; }

/// The bounds that are put to the test, in the order of hypotheses.
inline constexpr Bound tested_bounds[] = {Bound::bandwidth, Bound::compute, Bound::latency, Bound::launch,
                                          Bound::occupancy};
/// A unit or a level of memory is so busy that what warps wait for is their turn.
bool is_vetoed(const VerdictFacts& facts);

/// One a bound. Of several rules of a bound the one that may have come nearest to its threshold says why, and of the
/// confirmed bound the deciding one.
std::vector<Hypothesis> test_hypotheses(const VerdictFacts& facts, const Rule& decided);

/// The share of the time from which on a loss above the roof time is what limits.
inline constexpr double loss_share = 0.30;
/// Unfused traffic leave out what a step reads again: so many times as many may have been moved.
inline constexpr double uncounted_bytes_factor = 4;
/// Steps that reject a bound must have this share of the time for the whole to reject it.
inline constexpr double rejecting_majority = 0.80;

}  // namespace kbench
