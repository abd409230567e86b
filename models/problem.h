// A problem: one op alone, or with what a provider may fuse to it, at one shape, as microbenchmarks and files of shapes
// name it. Problems become small models, so that all that runs and measures models runs and measures them too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/step.h"
#include "models/model.h"

namespace kbench {

/// The step of `shape`, for the op kind called `op`, before anything is padded: the inverse of `shape_text`. The shape
/// is written as the kind's example has it, with "+bias" and the like for what is computed along with it, in the order
/// of execution. Throws UsageError that shows a right shape.
Step parse_problem(std::string_view op, std::string_view shape, Direction direction = Direction::fwd);

/// The distinct ops of `model`, each a problem, in order of first use. Fused steps are not among them: which ops a
/// provider fuses differs by provider.
std::vector<Step> problems_of(const Model& model);

/// `runs` times the problem, one after another, on `sets` sets of tensors in turn: with sets that together exceed a
/// cache several times each run finds it cold, with one set hot. Every tensor that outlives a run is resident. Layers
/// are called "run.0" and so on. Integers (tokens) are an input of the model, the same for all sets.
Model make_problem_model(const Step& problem, std::int64_t sets, std::int64_t runs);

/// Bytes of all inputs, weights and outputs of one run in `precision`, without padding.
double problem_bytes(const Step& problem, Precision precision);

}  // namespace kbench
