// The breakdown by cause: the time of each step, op kind, layer and of the whole as milliseconds that a change would
// give back. Each line is measured by a test of its own; none is the rest of the others but `unexplained`, so that the
// lines always add up. docs/method.md has what each cannot tell.
//
//     const Causes causes = find_causes(facts, roof_times, cycles);
//     causes.whole.lines[Cause::fixed].value;  // microseconds
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "analysis/explain/cause_lines.h"
#include "analysis/explain/cycle_account.h"
#include "analysis/explain/roof_time.h"
#include "analysis/facts/point_facts.h"
#include "analysis/result/interval.h"

namespace kbench {

/// A sum by name: time at one roof, or time that one change would give back.
struct CausePart {
    std::string name;
    Interval us;
    bool is_at_memory = false;  ///< it is a memory's roof
};

/// Steps summed: one op kind, one layer of all blocks, or the whole.
struct CauseGroup {
    std::string name;
    std::size_t steps = 0;           ///< that were timed
    double time_us = 0;              ///< what the lines add up to
    CauseLines lines, at_run_clock;  ///< as of StepCauses
    /// The changes that give a line back, the one that gives most first; each with its part of the line.
    std::array<std::vector<CausePart>, cause_count> changes;
    std::vector<CausePart> at_roofs;  ///< useful and extra work by roof, at the run's clock; longest first
    double unfitted_us = 0;           ///< time of steps whose fixed time is not known
    /// What is not explained of each step, without its sign, and of the whole drift and residual: signs cannot cancel.
    double misfit_us = 0;

    double misfit_share() const { return time_us > 0 ? misfit_us / time_us : 1; }
    /// Whether so little is left that the lines may be called an explanation.
    bool is_explanation() const;
    /// " and "-joined names of the changes that give back most of a line; empty without one.
    std::string change(Cause cause) const;
};
inline constexpr double explanation_tolerance = 0.10;

struct Causes {
    std::string unavailable;                  ///< why there are none; empty where there are
    std::vector<StepCauses> steps;            ///< by step, in order
    std::vector<CauseGroup> by_op, by_layer;  ///< longest first
    CauseGroup whole;                         ///< adds up to the end-to-end time
    bool has_fits = false;                    ///< the fixed time of some step is known
};

/// `roof_times` and `cycles`: of all steps; none where the point was not timed.
Causes find_causes(const PointFacts& facts, std::span<const StepRoofTimes> roof_times, const CycleAccounts& cycles);

/// Whether NVML read that the power limit lowered the clock.
bool is_at_power_limit(const Conditions& conditions);

/// Leaves the lines and takes away what would give them back, for a point whose figures carry no conclusion.
void withhold(Causes& causes);

}  // namespace kbench
