// How busy the units of an SM and L2 were, as counted. A unit near its limit is what a kernel waits for, whatever its
// warps are seen to wait for.
#pragma once

#include <array>
#include <string_view>

#include "analysis/explain/busy_unit.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

UnitActivity unit_activity(const StepFacts& step);

/// Whether Verdict::level is a unit, and not the ceiling of a roof.
bool is_unit(std::string_view level);

/// Counters of units that few instructions can keep busy, beside those of the set core: known without them is nothing.
inline constexpr std::array needed_units{&Counters::pipe_xu, &Counters::pipe_lsu, &Counters::pipe_shared_memory,
                                         &Counters::l2_lookups};
/// Those of the pipes that many instructions keep busy: needed where more are issued than half of what fills one.
inline constexpr std::array arithmetic_units{&Counters::pipe_alu, &Counters::pipe_fma, &Counters::pipe_fp64};
/// What the first three of them did: counted with them, work of roofs.
inline constexpr std::array work_of_units{&Counters::xu_inst, &Counters::lsu_inst, &Counters::shared_wavefronts};

}  // namespace kbench
