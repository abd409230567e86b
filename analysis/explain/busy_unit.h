// How busy a unit of an SM or L2 was, and how units are called.
#pragma once

#include <string_view>
#include <vector>

namespace kbench {

/// Active for the first share and more, a unit is what binds; from the second on it may be.
inline constexpr double busy_unit_share = 0.80, half_busy_unit_share = 0.60;

/// How units are called that a rule names, or that have roofs.
namespace unit {
inline constexpr std::string_view issue_slots = "issue slots", shared_memory = "shared memory",
                                  special_functions = "special-function unit", load_store = "load-store unit";
}  // namespace unit

struct BusyUnit {
    std::string_view name;  ///< such as "tensor pipe"; empty where none was counted
    double share = 0;       ///< its part of the cycles in which an SM had a warp; L2's of all cycles
    bool of_active = true;  ///< the share is of the former
};

/// The units of a step, and the busiest: of the SM's pipes and schedulers, and of shared memory and L2.
struct UnitActivity {
    std::vector<BusyUnit> all;  ///< every unit that was counted; of a unit with several counters the busiest
    BusyUnit pipe, memory;
    /// No unit of the SM that was not counted can be busier than half_busy_unit_share: an instruction takes the ALU or
    /// FMA pipe two cycles at most, so that few issues keep neither busy. (L2 has a roof as well.)
    bool known = false;

    const BusyUnit& busiest() const { return memory.share > pipe.share ? memory : pipe; }
};

}  // namespace kbench
