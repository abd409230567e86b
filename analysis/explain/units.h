// How busy the units of an SM and L2 were, as counted. A unit near its limit is what a kernel waits for, whatever its
// warps are seen to wait for.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "analysis/facts/counters.h"
#include "kbench/result.h"

namespace kbench {

/// Active for the first share and more, a unit is what binds; from the second on it may be.
inline constexpr double busy_share = 0.80, half_busy_share = 0.60;

/// How units are called that a rule names, or that have roofs.
inline constexpr std::string_view issue_slots = "issue slots", shared_memory = "shared memory",
                                  special_functions = "special-function unit", load_store = "load-store unit";
/// Verdict::level where nothing binds that was counted.
inline constexpr std::string_view units_not_counted = "units not counted";

struct BusyUnit {
    std::string_view name;  ///< such as "tensor pipe"; empty where none was counted
    double share = 0;       ///< of the cycles in which an SM had a warp; L2's of all cycles
    bool of_active = true;  ///< of the former
};
/// Every unit that was counted, schedulers as well; of a unit with several counters the busiest.
std::vector<BusyUnit> busy_units(const StepResult& step);

/// The busiest units of a step: of the SM's pipes and schedulers, and of shared memory and L2.
struct UnitActivity {
    BusyUnit pipe, memory;
    /// No unit of the SM that was not counted can be busier than half_busy_share: an instruction takes the ALU or FMA
    /// pipe two cycles at most, so that few issues keep neither busy. (L2 has a roof as well.)
    bool known = false;

    const BusyUnit& busiest() const { return memory.share > pipe.share ? memory : pipe; }
};
UnitActivity unit_activity(const StepResult& step);

/// Whether Verdict::level is a unit, and not the ceiling of a roof.
bool is_unit(std::string_view level);

/// Counters of units that few instructions can keep busy, beside those of the set core: known without them is nothing.
inline constexpr std::array needed_units{&Counters::pipe_xu, &Counters::pipe_lsu, &Counters::pipe_shared_memory,
                                         &Counters::l2_lookups};
/// What the first three of them did: counted with them, work of roofs.
inline constexpr std::array work_of_units{&Counters::xu_inst, &Counters::lsu_inst, &Counters::shared_wavefronts};

}  // namespace kbench
