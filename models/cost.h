// What a model and its steps must do at the least, by arithmetic on shapes.
#pragma once

#include <cstddef>
#include <vector>

#include "kbench/cost.h"
#include "models/model.h"

namespace kbench {

/// Size of a tensor in `precision`, without padding.
double tensor_bytes(const Tensor& tensor, Precision precision);

/// Cost of a step that computes `ops` (indices into model.ops) in one call. Tensors that only pass between these ops
/// cost no bytes; a tensor that several of them read counts once.
Cost step_cost(const Model& model, const std::vector<std::size_t>& ops, Precision precision);

/// Cost of the timed part of a model where each op is a step by itself and no cache keeps the weights of a recurrent
/// layer from one time step to the next: its bytes are the traffic of a program that fuses nothing.
Cost unfused_cost(const Model& model, Precision precision);

/// Compulsory traffic of the timed part of a model: weights, inputs and outputs once each, as if it were one step.
/// Tensors that untimed ops make are inputs, such as the activations that a backward alone reads.
double compulsory_bytes(const Model& model, Precision precision);

}  // namespace kbench
