// Roof times: the time that a step's work takes at each roof. Roofs work at the same time, so that these do not add
// up to it; where two are equally long, neither is said to be the one that binds. Each has an interval from its roof,
// the clock and the count.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/busy_unit.h"
#include "analysis/facts/point_facts.h"
#include "analysis/machine/ceilings.h"
#include "analysis/result/interval.h"
#include "kbench/quantity.h"

namespace kbench {

/// The time that one roof roof times of a step.
struct RoofTime {
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

    /// Work over the fastest that the roof was seen to be, where `workers` are threads: their roofs may be the median
    /// of what was read between the samples, and the interval ends with the fastest. Else `us`.
    double least_us(Workers workers) const;
    /// Whether it is a memory's: a level's, or shared memory's.
    bool is_memory() const;
    /// Whose it is, as reports call it: the level, the unit, or the ceiling of the unit that computes.
    std::string_view name() const;
};

/// Counted bytes repeat from run to run, and agree with Nsight Compute's, within this part (docs/method.md).
inline constexpr double count_tolerance = 0.02;

void sort_longest_first(std::vector<RoofTime>& roof_times);

/// The two longest of a step's roof times, in that order, may be equally long: their intervals meet.
bool are_tied(const std::vector<RoofTime>& roof_times);

/// Those of one step, each list longest first.
struct StepRoofTimes {
    std::vector<RoofTime> work;   ///< for bytes and FLOPs; a counted zero is one; empty without roofs
    std::vector<RoofTime> units;  ///< for what units did, of which a cost model knows nothing
    bool compute_known = false;   ///< the unit that computes has a roof, or the step no FLOPs
    bool memory_known = false;    ///< each level that has a roof has bytes and the other way round

    /// The longest of work; null without a roof time.
    const RoofTime* binding() const { return work.empty() || work.front().us <= 0 ? nullptr : &work.front(); }
    /// The longest roof time over `time_us`; 0 without one.
    double binding_share(double time_us) const;
    /// That of a level of memory, or of the unit that computes; null where there is none.
    const RoofTime* at(std::optional<Level> level) const;
    /// Both lists, longest first.
    std::vector<RoofTime> all() const;
    /// All roof times one after another, as run: longer than the work takes, as roofs work at the same time.
    Interval together() const;
};

/// One roof's roof times of several steps; or how long a unit was busy, as counted.
struct RoofTimeSum {
    std::string name;  ///< RoofTime::name(), or that of the busy unit
    bool is_busy_time = false;
    Interval us;
};

/// The roof times of several steps, roof by roof.
struct RoofTimeSums {
    std::vector<RoofTimeSum> by_roof;  ///< longest first; then units, busiest first
    Interval longest_us;               ///< the longest roof time of each step, as run: what the time cannot be under
    double useful_us = 0;              ///< the longest roof time of each step, without extra work, at the roof's clock
    double tied_us = 0;                ///< time of the steps whose two longest roof times are tied

    /// Adds a step that took `time_us`; where it has cycles, with its units, which were busy in `active_us` of that.
    void add(const StepRoofTimes& roof_times, double time_us, std::span<const BusyUnit> units = {},
             double active_us = 0);
    RoofTimeSums& operator+=(const RoofTimeSums& other);
    /// The roof with the longest sum; null without one.
    const RoofTimeSum* longest() const;
};

}  // namespace kbench
