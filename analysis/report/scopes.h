// How the scopes that a program measured of itself are told, of one run or of several of more and more GPUs.
#pragma once

#include <string>
#include <vector>

#include "analysis/report/document.h"
#include "analysis/result/scopes.h"

namespace kbench {

/// The iteration, each scope's time and place in it, and of several runs the scaling chart.
Document scopes_document(const std::vector<ScopeRun>& runs);
/// The same in full precision.
std::string scopes_json(const std::vector<ScopeRun>& runs);

/// The whole iteration, and the average and the maximum of the scopes stacked, by run.
Chart scaling_chart(const std::vector<ScopeRun>& runs);

}  // namespace kbench
