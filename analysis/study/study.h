// A study: four questions about a model on a machine, answered from the points of one result. Each sentence is made of
// figures that can be found again from result.json, and no point stands in it that something speaks against.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/study/answers.h"

namespace kbench {

/// The study of a result with a plan of one; `explained` must outlive it. Throws std::invalid_argument without a plan.
Study study_of(const ExplainedResult& explained);

/// By point of the result: why it is no evidence; empty where it is. docs/study.md has the rules.
std::vector<std::string> not_evidence(const ExplainedResult& explained);

}  // namespace kbench
