// The demands: what each roof takes for a step's work, beside each other. They overlap in time, so that they do not add
// up to it; where two are equally long, neither is said to be the one that binds. Each has an interval from its roof,
// the clock and the count.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/busy_unit.h"
#include "analysis/machine/ceilings.h"
#include "analysis/result/interval.h"
#include "kbench/quantity.h"

namespace kbench {

/// The time that one roof demands of a step.
struct Demand {
    Roof roof;
    std::optional<Level> level;  ///< a level of memory; nothing for a unit of the SM
    std::string_view unit;       ///< as busy units are called; empty for bytes and FLOPs
    double work = 0;             ///< bytes, FLOPs or instructions; of the cost model where they were not counted
    /// FLOPs executed beyond those: padding, masks, overhanging tiles. Negative where some of them ran on another unit
    /// (GELU in a GEMM's epilogue).
    double extra_work = 0;
    double us = 0;                     ///< work over the roof
    Interval run_us;                   ///< as it was run: on-chip roofs at the run's clock, with the extra work
    Origin origin = Origin::measured;  ///< the work was counted, or derived from the cost model

    /// Whether a memory demands it: a level, or shared memory.
    bool is_memory() const;
    /// What demands it, as reports call it: the level, the unit, or the ceiling of the unit that computes.
    std::string_view name() const;
};

/// Counted bytes repeat from run to run, and agree with Nsight Compute's, within this part (docs/method.md).
inline constexpr double count_tolerance = 0.02;

void sort_longest_first(std::vector<Demand>& demands);

/// The two longest of a step's demands, in that order, may be equally long: their intervals meet.
bool are_tied(const std::vector<Demand>& demands);

/// Those of one step, each list longest first.
struct StepDemands {
    std::vector<Demand> work;    ///< for bytes and FLOPs; a counted zero is one; empty without roofs
    std::vector<Demand> units;   ///< for what units did, of which a cost model knows nothing
    bool compute_known = false;  ///< the unit that computes has a roof, or the step no FLOPs
    bool memory_known = false;   ///< each level that has a roof has bytes and the other way round

    /// The longest of work; null where nothing is demanded.
    const Demand* binding() const { return work.empty() || work.front().us <= 0 ? nullptr : &work.front(); }
    /// Share of `time_us` that the binding roof demands; 0 without one.
    double binding_share(double time_us) const;
    /// That of a level of memory, or of the unit that computes; null where there is none.
    const Demand* at(std::optional<Level> level) const;
    /// Both lists, longest first.
    std::vector<Demand> all() const;
    /// What all roofs demand one after another, as run: more than they take, as they work at the same time.
    Interval together() const;
};

/// One roof's demands of several steps; or how long a unit was busy, as counted.
struct DemandSum {
    std::string name;  ///< Demand::name(), or that of the busy unit
    bool is_busy_time = false;
    Interval us;
};

/// The demands of several steps, roof by roof.
struct DemandSums {
    std::vector<DemandSum> by_roof;  ///< longest first; then units, busiest first
    Interval longest_us;             ///< the longest demand of each step, as run: what the time cannot be under
    double useful_us = 0;            ///< the longest demand of each step, without extra work, at the roof's clock
    double tied_us = 0;              ///< time of the steps whose two longest demands are tied

    /// Adds a step that took `time_us`; where it has cycles, with its units, which were busy in `active_us` of that.
    void add(const StepDemands& demands, double time_us, std::span<const BusyUnit> units = {}, double active_us = 0);
    DemandSums& operator+=(const DemandSums& other);
    /// The roof with the longest sum; null without one.
    const DemandSum* longest() const;
};

}  // namespace kbench
