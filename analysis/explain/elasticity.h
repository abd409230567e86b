// Time against SMs, or against a CPU's threads: what taking them away did to every step, as a causal test of whether
// they bind it. Pure arithmetic on the recorded times of a point; docs/method.md has what it cannot tell. Whatever is
// called after SMs here holds for threads, too.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/point_facts.h"

namespace kbench {

/// ln(time / time of all) / ln(SMs of all / SMs): 1 where time grows as SMs are taken away, 0 where it stays. Both
/// intervals must be positive and `multiprocessors` fewer than `all`; the ends are taken apart as far as they go.
Interval elasticity_of(const Interval& all_us, const Interval& us, int all, int multiprocessors);

/// Some steps on some of the SMs.
struct SmEffect {
    int multiprocessors = 0;
    Interval ratio;     ///< time over that on all SMs, as recorded
    Interval as_timed;  ///< the elasticity of that: right for what does not run at the SMs' clock, as DRAM
    /// The elasticity of the times multiplied with the SMs' clock over that on all SMs, which is lower: right for what
    /// runs at that clock. The same as `as_timed` where a clock is not known.
    Interval at_equal_clocks;
    /// Whichever of the two is right.
    double low() const { return std::min(as_timed.low, at_equal_clocks.low); }
    double high() const { return std::max(as_timed.high, at_equal_clocks.high); }
};

/// What the numbers nearest to all SMs say.
enum class SmFinding {
    binds,         ///< time grows as SMs are taken away, in proportion or faster
    binds_partly,  ///< more slowly than in proportion
    does_not_bind,
    cannot_tell,
};

/// Steps summed: one op kind, one layer of all blocks, or one step.
struct SmGroup {
    std::string name;
    Workers workers = Workers::sms;  ///< what was taken away
    std::size_t steps = 0;
    Interval us;                    ///< on all SMs
    std::vector<SmEffect> effects;  ///< most SMs first
    SmFinding finding = SmFinding::cannot_tell;
    bool fills_few =
        false;  ///< most of its time is in kernels with no more blocks than the first number of SMs below all
};

struct SmElasticity {
    std::string unavailable;               ///< why there is none; empty when there is one, or nothing was asked for
    Workers workers = Workers::sms;        ///< what was taken away
    int multiprocessors = 0;               ///< all; 0: there is none
    std::vector<double> clock_ratios;      ///< by effect: the SMs' clock over that on all SMs; 0: unknown
    std::vector<SmGroup> by_op, by_layer;  ///< longest first
    std::vector<SmGroup> steps;            ///< that have kernels, in order
    std::optional<SmGroup> model;          ///< all steps
};
SmElasticity sm_elasticity(const PointFacts& facts);

/// Leaves all that was seen and takes away what follows, for a point whose figures carry no conclusion.
void withhold(SmElasticity& elasticity);

/// One sentence: what was seen of the group, and what follows.
std::string sentence(const SmGroup& group, int all);

}  // namespace kbench
