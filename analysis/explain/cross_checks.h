// Cross-checks: quantities that were found in two ways which share no figure but the time, beside each other. How
// far they are apart is what neither account alone can show.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/explain/cycle_account.h"
#include "analysis/explain/roof_time.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

struct CrossCheck {
    std::string first, second;  ///< what was added up, of which steps or kernels
    double first_us = 0, second_us = 0;
    std::string may_differ;  ///< what, other than an error, sets them apart
};

/// Those for which the result has both: the tensor pipe's active cycles against the FLOPs over its roof, SMs without a
/// warp while another has one against what launches leave of their last wave, and the marginal costs of all op kinds
/// against the whole.
std::vector<CrossCheck> cross_check_all(const PointFacts& facts, std::span<const StepRoofTimes> roof_times,
                                        const CycleAccounts& cycles);

}  // namespace kbench
