// The demands: what each roof takes for a step's work, beside each other. They overlap in time, so that they do not add
// up to it; where two are equally long, neither is said to be the one that binds. Each has an interval from its roof,
// the clock and the count.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/machine/ceilings.h"
#include "analysis/result/interval.h"
#include "kbench/result.h"

namespace kbench {

/// The SM clock of a run, MHz: its mean, the lowest and the highest of its blocks of samples. 0: not known.
Interval run_clock(const Point& point);

/// The time that one roof demands of a step.
struct Demand {
    Roof roof;
    std::optional<Level> level;  ///< of memory; nothing for a unit of the SM
    std::string_view unit;       ///< of unit_demands_of(), as busy units are called; empty for bytes and FLOPs
    double work = 0;             ///< bytes, FLOPs or instructions; of the cost model where they were not counted
    double extra_work = 0;  ///< FLOPs executed beyond those: padding, masks, overhanging tiles. Negative where some
                            ///< of them ran on another unit (GELU in a GEMM's epilogue)
    double us = 0;          ///< work over the roof
    Interval run_us;        ///< as it was run: on-chip roofs at the run's clock, with the extra work
    Origin origin = Origin::measured;  ///< of the work: counted, or derived from the cost model

    /// Of memory: a level, or shared memory.
    bool is_memory() const;
    /// What demands it, as reports call it: the level, the unit, or the ceiling of the unit that computes.
    std::string_view name() const;
};
/// Counted bytes repeat from run to run, and agree with Nsight Compute's, within this part (docs/method.md).
inline constexpr double count_tolerance = 0.02;

/// What `roofs` demand of a step, longest first. `dram`: whether DRAM's bytes, where there are counters, were measured
/// or estimated; without counters they are the streaming bytes, derived. `run_mhz`: the run's clock of SMs, for
/// run_us; 0: the roofs' own.
std::vector<Demand> demands_of(const StepResult& step, const Roofs& roofs, Origin dram = Origin::measured,
                               const Interval& run_mhz = {});

/// What the roofs of shared memory, of the special-function unit and of the load-store unit demand of a step, longest
/// first: as counted, none where nobody counted. Shared memory's is in passes of its data stage, which conflicts of
/// banks add to. Apart from the others, since nobody asked for this work: a cost model has none of it.
std::vector<Demand> unit_demands_of(const StepResult& step, const Roofs& roofs, const Interval& run_mhz = {});

/// Whether the bytes of DRAM among the point's counters were counted or estimated; the same for all its steps.
/// measured where there are none.
Origin dram_origin(const Point& point);

/// Both together, longest first.
std::vector<Demand> all_demands(const std::vector<Demand>& demands, const std::vector<Demand>& unit_demands);

/// The two longest of a step's demands, in that order, may be equally long: their intervals meet.
bool are_tied(const std::vector<Demand>& demands);

/// One roof's demands of several steps; or how long a unit was busy, as counted.
struct DemandSum {
    std::string name;  ///< Demand::name(), or that of the busy unit
    bool is_busy_time = false;
    Interval us;
};

/// The demands of several steps, roof by roof.
struct DemandSums {
    std::vector<DemandSum> by_roof;  ///< longest first; then units, busiest first
    Interval longest_us;             ///< of each step its longest, as run: what the time cannot be under
    double useful_us = 0;            ///< of each step its longest, without extra work, at the roof's clock
    double tied_us = 0;              ///< time of the steps whose two longest demands are tied

    /// Of a step that took `time_us`, of which SMs were active for `active_us` (units count active cycles; nothing: not
    /// counted).
    void add(const StepResult& step, const std::vector<Demand>& demands, const std::vector<Demand>& unit_demands,
             double time_us, const std::optional<double>& active_us);
    DemandSums& operator+=(const DemandSums& other);
    /// The roof with the longest sum; null without one.
    const DemandSum* longest() const;
};

}  // namespace kbench
