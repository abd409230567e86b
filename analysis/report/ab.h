// How a comparison of two sides run in turn is told.
#pragma once

#include <string>

#include "analysis/compare/ab.h"
#include "analysis/report/document.h"

namespace kbench {

/// What was run, a row for each point with its verdict, and what that rests on.
Document ab_document(const AbComparison& comparison);
/// The same with every run's figure, in full precision.
std::string ab_json(const AbComparison& comparison);

/// "B takes 2.1 % longer [1.7, 2.4]", "B is 2.1 % higher [1.7, 2.4]", or why that cannot be told.
std::string ab_sentence(const AbPoint& point, double target);

}  // namespace kbench
