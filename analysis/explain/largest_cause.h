// Which cause has the most of a step's time or of the whole, and whether that is certain.
#pragma once

#include <optional>
#include <string>

#include "analysis/explain/busy_unit.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/cycle_account.h"
#include "analysis/explain/verdict.h"

namespace kbench {

/// The largest cause as a bound. Work at a roof with its clock and extra work is one; so is a main loop below its roof,
/// whose mechanism is the unit that is busiest, or else what warps wait for.
struct LargestCause {
    Bound bound = Bound::not_identifiable;
    std::string level;  ///< like Verdict::level
    Interval us;
    bool is_clear = false;  ///< larger than the largest of any other bound, however their intervals fall
    std::string second;     ///< the largest of another bound, as "latency-bound (main loop)"; empty without one
};

/// Nothing where the step has no fit of its times by size, or where most is not explained.
std::optional<LargestCause> largest_cause(const StepCauses& step, const UnitActivity& units,
                                          const CycleAccount& cycles);
/// Nothing where half of the time has no fit.
std::optional<LargestCause> largest_cause(const CauseGroup& group);

}  // namespace kbench
