// A step of a point that was faster than a roof allows: the roof was measured too low, or its work was counted too
// high.
#pragma once

#include <optional>
#include <string>

#include "analysis/explain/explanation.h"

namespace kbench {

struct RoofBreach {
    std::string step;  ///< "12 h.1.attn"
    std::string ceiling;
    double excess = 0;  ///< its roof time over the step's time, less 1
};
inline constexpr double breach_tolerance = 0.02;

/// The step of a point that is furthest above a roof, if any is by more than the tolerance. Bytes count only where
/// they were counted: unfused traffic may never have left a cache. A CPU's roof is the fastest that it was seen to be.
std::optional<RoofBreach> worst_breach(const Explanation& point);

}  // namespace kbench
