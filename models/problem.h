// A problem: one op at one shape, alone or with what a provider may fuse to it, as microbenchmarks and files of shapes
// name it. A problem becomes a small model, so that whatever runs and measures models also runs and measures it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/step.h"
#include "models/model.h"

namespace kbench {

/// The step that `shape` describes for the op kind `op`, without padding: the inverse of `shape_text`. The shape is
/// written as in the kind's example, followed by "+bias" and the like for fused ops in order of execution. Throws
/// UsageError that shows a right shape.
Step parse_problem(std::string_view op, std::string_view shape, Direction direction = Direction::fwd);

/// The shape of the kind's example, without what may follow it.
std::string_view example_shape(const OpKind& kind);

/// The distinct ops of `model` as problems, in order of first use. Fused steps are not among them, because providers
/// differ in what they fuse.
std::vector<Step> problems_of(const Model& model);

/// A model that runs the problem `runs` times, on `sets` sets of tensors in turn. When all sets together exceed a cache
/// several times, each run finds it cold; with one set, hot. Every tensor that outlives a run is resident. Layers are
/// called "run.0" and so on. Integers (tokens) are one input of the model, shared by all sets.
Model make_problem_model(const Step& problem, std::int64_t sets, std::int64_t runs);

/// Bytes of all inputs, weights and outputs of one run in `precision`, without padding.
double problem_bytes(const Step& problem, Precision precision);

}  // namespace kbench
