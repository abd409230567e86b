// Dependent steps: a recurrent layer's time steps go one after another, however many units there are. What one of them
// takes, beside what the roofs demand of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/explain/busy_unit.h"
#include "analysis/explain/roof_time.h"
#include "analysis/explain/verdict.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// What handing on the result of a dependent step takes by itself, without any work.
struct Exchange {
    std::string ceiling;  ///< graph_node or grid_barrier
    double us = 0;        ///< what one dependent step needs
    /// graph_node: the step has at least a kernel for each dependent step, and so many empty ones take as long.
    /// grid_barrier: it has fewer, and its blocks must wait for each other within one. A barrier among all SMs takes as
    /// long; one among fewer may be shorter.
    bool is_bound() const { return ceiling == "graph_node"; }
};

/// Steps of one layer of all blocks and one op kind, or of several.
struct DependentSteps {
    std::string layer, op;                ///< empty of several
    std::vector<std::size_t> steps = {};  ///< their positions in the point
    std::int64_t each = 0;                ///< dependent steps of each; 0: they differ
    double dependent = 0;                 ///< how many all of them have
    double time_us = 0;                   ///< likewise
    DemandSums demands = {};              ///< likewise
    double together_us = 0;               ///< all that the roofs demand, one after another
    bool is_complete = true;  ///< every level and unit was counted, or has nothing to do; a CPU's caches never are
    std::optional<Exchange> exchange = {};
    Bound bound = Bound::not_identifiable;  ///< what binds most of their time, as verdicts say it
    /// By clocks in their kernels: means over the steps, least and most of all. None where one of them has none.
    std::optional<StepAccount> account = {};

    /// What one dependent step takes.
    double us() const { return time_us / dependent; }
    double together_us_of_one() const { return together_us / dependent; }
    double together_share() const { return together_us / time_us; }
};

/// Those steps that were timed and have more than one, the longest together first. Verdicts then say their bound.
std::vector<DependentSteps> dependent_steps_of(const PointFacts& facts, std::span<const StepDemands> demands,
                                               std::span<const UnitActivity> units);
/// All of them together; nothing where there are none. Their bound is the one that they share.
std::optional<DependentSteps> together(std::span<const DependentSteps> groups);

/// Evidence on a step with several dependent steps, a sentence each: what one of them takes, what of it roofs demand.
/// None for other steps.
std::vector<std::string> dependent_evidence(const StepFacts& step, const StepDemands& demands,
                                            const UnitActivity& units, const Roofs& roofs);

/// Cycles of all phases together, by their medians.
double cycles_of(const StepAccount& account);

/// "L2 0.41 us, DRAM 0.15 us": what each roof demands of one dependent step.
std::string roofs_of_one(const DependentSteps& group);

}  // namespace kbench
