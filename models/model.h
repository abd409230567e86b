// A model: tensors, and the ops that read and write them in execution order, under the checkpoint's layer names.
// It is a pure description: no device, no data, no choice of provider.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kbench/cost.h"
#include "kbench/op.h"

namespace kbench {

using TensorId = std::size_t;

/// A tensor of a checkpoint that is part of a model's: so many of its rows, or of the elements of a vector.
struct TensorPart {
    std::string name;
    std::int64_t extent;
};

/// An array of any number of dimensions, row-major. An op sees a matrix: the last dimension is its columns, the product
/// of all others its rows.
/// Weights have the name and the shape that they have in a checkpoint, or consist of `parts` that have.
struct Tensor {
    std::string name;
    Role role = Role::activations;
    std::vector<std::int64_t> shape;
    ElementType element = ElementType::storage;
    /// What fills it where nothing else does: for weights, inputs and resident tensors.
    Contents contents = {};
    /// The weight whose values it starts with, in its own type: an fp32 master copy of a 16-bit weight.
    std::optional<TensorId> starts_as = {};
    /// Whether it has memory of its own for the whole run, filled before it as weights are, whatever its role.
    bool resident = false;
    /// For a weight that a checkpoint has as several, one below the other: those of products of one input, made as one.
    std::vector<TensorPart> parts = {};

    std::int64_t columns() const { return shape.back(); }
    std::int64_t rows() const;
    std::int64_t elements() const { return rows() * columns(); }
};

/// One op in a layer. `inputs` and `outputs` follow the order of the op's operands. An operand that is worked on in
/// place is an input, and an output in the same memory.
struct OpNode {
    Op op;
    std::string layer;
    std::vector<TensorId> inputs, outputs;
    Direction direction = Direction::fwd;
    /// For a backward op: the forward op that it belongs to. For a recomputed forward op: the op that it repeats.
    std::optional<std::size_t> forward = {};

    bool is_recomputed() const { return direction == Direction::fwd && forward; }

    /// The outputs whose operand has this `use`: output or in_place.
    std::vector<TensorId> outputs_of(OperandUse use) const;
};

struct Model {
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<OpNode> ops;
    /// Tensors that are given to the model in every run, and those that it is run for, which `--dump-output` names.
    std::vector<TensorId> inputs, outputs;

    /// What training minimises. Its bwd overwrites its first input with the gradient of that input. It is one of
    /// `ops` only after with_backward (backward.h).
    std::optional<OpNode> loss = {};
    /// Pairs of a weight and its gradient, for each weight that the loss depends on; empty without a backward.
    std::vector<std::pair<TensorId, TensorId>> gradients = {};
    /// Whether an op updates weights; then no repacked copy of them may be kept.
    bool weights_change = false;
    /// This many of the first ops run once, before timing starts, and their results stay.
    std::size_t untimed_ops = 0;

    /// The inputs, and what else a file may give: the caches.
    std::vector<TensorId> given() const;
    /// Number of elements in all weights; a tied weight counts once.
    std::int64_t parameter_count() const;
};

}  // namespace kbench
