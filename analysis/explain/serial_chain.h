// Time steps: a recurrent layer's time steps go one after another, however many units there are. What one of them
// takes, compared with its roof times.
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

/// What handing on the result of a time step takes by itself, without any work.
struct Exchange {
    std::string ceiling;  ///< graph_node or grid_barrier
    double us = 0;        ///< what one time step needs
    /// graph_node: the step has at least a kernel for each time step, and so many empty ones take as long.
    /// grid_barrier: it has fewer, and its blocks must wait for each other within one. A barrier among all SMs takes as
    /// long; one among fewer may be shorter.
    bool is_bound() const { return ceiling == "graph_node"; }
};

/// Steps of one layer of all blocks and one op kind, or of several.
struct SerialChain {
    std::string layer, op;                ///< empty of several
    std::vector<std::size_t> steps = {};  ///< their positions in the point
    std::int64_t each = 0;                ///< time steps of each; 0: they differ
    double time_steps = 0;                ///< how many all of them have
    double time_us = 0;                   ///< likewise
    RoofTimeSums roof_times = {};         ///< likewise
    double together_us = 0;               ///< all roof times, one after another
    bool is_complete = true;  ///< every level and unit was counted, or has nothing to do; a CPU's caches never are
    std::optional<Exchange> exchange = {};
    Bound bound = Bound::not_identifiable;  ///< what binds most of their time, as verdicts say it
    /// By clocks in their kernels: means over the steps, least and most of all. None where one of them has none.
    std::optional<StepAccount> account = {};

    /// What one time step takes.
    double us() const { return time_us / time_steps; }
    double together_us_of_one() const { return together_us / time_steps; }
    double together_share() const { return together_us / time_us; }
};

/// Those steps that were timed and have more than one, the longest together first. Verdicts then say their bound.
std::vector<SerialChain> serial_chains_of(const PointFacts& facts, std::span<const StepRoofTimes> roof_times,
                                          std::span<const UnitActivity> units);
/// All of them together; nothing where there are none. Their bound is the one that they share.
std::optional<SerialChain> together(std::span<const SerialChain> groups);

/// Evidence on a step with several time steps, a sentence each: what one of them takes, and its roof times.
/// None for other steps.
std::vector<std::string> serial_chain_evidence(const StepFacts& step, const StepRoofTimes& roof_times,
                                               const UnitActivity& units, const Roofs& roofs);

/// What a step with several time steps needs for each beside the work; nothing where it is not known, as where as many
/// barriers among all SMs would take longer than the step.
std::optional<Exchange> exchange_of(const StepFacts& step, const Roofs& roofs);

/// Cycles of all phases together, by their medians.
double cycles_of(const StepAccount& account);

/// "L2 0.41 us, DRAM 0.15 us": what each roof roof times of one time step.
std::string roofs_of_one(const SerialChain& group);

}  // namespace kbench
