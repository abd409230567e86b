// The roof times of a step, from its facts.
#pragma once

#include <vector>

#include "analysis/explain/roof_time.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// The time that a step's bytes and FLOPs take at `roofs`, longest first. Bytes that were not counted are the unfused
/// traffic, derived. `clock_mhz`: of the SMs, for run_us; 0: the roofs' own.
std::vector<RoofTime> roof_times_of(const StepFacts& step, const Roofs& roofs, const Interval& clock_mhz = {});

/// The same with products at the roof of the fastest unit for their precision, whichever instructions the step ran.
std::vector<RoofTime> roof_times_at_fastest(const StepFacts& step, const Roofs& roofs, const Interval& clock_mhz = {});

/// All, as the step ran. Those of units: what the roofs of shared memory, of the special-function unit and of the
/// load-store unit take, as counted; none where nobody counted. Shared memory's is in passes of its data stage, which
/// conflicts of banks add to. Apart from the others, since nobody asked for this work: a cost model has none of it.
StepRoofTimes roof_times_of_step(const StepFacts& step, const Roofs& roofs);

}  // namespace kbench
