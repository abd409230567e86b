// What would give a cause's time back: a table by cause and by what the step is. Internal to the breakdown by cause.
#pragma once

#include <string>
#include <string_view>

#include "analysis/explain/cause_lines.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// What the table looks at.
struct ChangeGrounds {
    const StepFacts& facts;
    const StepCauses& causes;
    bool by_slower_unit = false;  ///< it ran slower instructions than the fastest unit for its precision has
    bool at_power_limit = false;  ///< NVML read that the power limit lowered the clock
    /// How much longer its fixed time is than that of GEMMs without an activation; 0 where that is not known.
    double activation_us = 0;
};
std::string change_of(Cause cause, const ChangeGrounds& grounds);

/// The activation that a product computes in its epilogue, such as gelu; empty without one.
std::string_view activation_of(const StepResult& step);

}  // namespace kbench
