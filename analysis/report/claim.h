// How a claim's check is told.
#pragma once

#include <string>

#include "analysis/compare/claim.h"
#include "analysis/report/document.h"

namespace kbench {

/// The answer for one precision, then a row for each, which ends in "possible" or "impossible".
Document claim_document(const Claim& claim);
/// The same figures in full precision.
std::string claim_json(const Claim& claim);

}  // namespace kbench
