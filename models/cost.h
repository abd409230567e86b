// What steps of a model, and the model, must do: pure arithmetic on shapes.
#pragma once

#include <cstddef>
#include <vector>

#include "kbench/cost.h"
#include "models/model.h"

namespace kbench {

/// Bytes that one tensor takes in `precision` without padding.
double tensor_bytes(const Tensor& tensor, Precision precision);

/// Cost of a step that computes `ops` (indices into model.ops) at once: tensors that live only between them cost no
/// bytes, a tensor read by several of them counts once.
Cost step_cost(const Model& model, const std::vector<std::size_t>& ops, Precision precision);

/// Least bytes of what is timed of the model: weights, inputs and outputs once, as if it were one step. What its
/// untimed ops leave is an input, as the activations are that a backward alone reads.
double least_bytes(const Model& model, Precision precision);

}  // namespace kbench
