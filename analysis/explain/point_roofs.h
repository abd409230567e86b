// One point against the roofs in a word and a figure: what tables and curves of a sweep show.
#pragma once

#include <optional>
#include <string>

#include "analysis/explain/time_breakdown.h"
#include "analysis/explain/verdict.h"

namespace kbench {

/// The longest roof times of all steps over the end-to-end time; nothing without roofs or times.
std::optional<double> roof_share(const TimeBreakdown& breakdown);

/// The roof whose roof times of all steps take longest together: DRAM, L2, L1 or a unit's ceiling; empty without roofs
/// or times.
std::string binding_roof(const TimeBreakdown& breakdown);

/// "bandwidth-bound (DRAM)".
std::string verdict_text(const Verdict& verdict);

}  // namespace kbench
