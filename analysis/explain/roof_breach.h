// The step of a result that was furthest above a roof.
#pragma once

#include <optional>

#include "analysis/explain/explain.h"
#include "analysis/explain/point_breach.h"

namespace kbench {

/// The worst of all points' worst_breach().
std::optional<RoofBreach> worst_breach(const ExplainedResult& explained);

}  // namespace kbench
