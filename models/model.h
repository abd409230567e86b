// A model: tensors, and ops that read and write them, in execution order, with the layer names of the checkpoint.
// Pure description: no device, no data, no choice of provider.
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

/// An array of any number of dimensions, row-major. To ops it is a matrix: its last dimension are the columns, all
/// others together the rows.
/// Weights carry the name and the shape that they have in a checkpoint.
struct Tensor {
    std::string name;
    Role role = Role::activations;
    std::vector<std::int64_t> shape;
    ElementType element = ElementType::storage;
    /// What it is filled with where nothing else fills it: weights, inputs and resident tensors.
    Contents contents = {};
    /// The weight whose values it holds at first, in its own type: an fp32 copy of a 16-bit weight.
    std::optional<TensorId> starts_as = {};
    /// In memory of its own for the whole run, filled before it as weights are, whatever the role.
    bool resident = false;

    std::int64_t columns() const { return shape.back(); }
    std::int64_t rows() const;
    std::int64_t elements() const { return rows() * columns(); }
};

/// One op in a layer. `inputs` and `outputs` stand in the order of the op's operands; one that is worked on in place is
/// an input, and the output is the same memory.
struct OpNode {
    Op op;
    std::string layer;
    std::vector<TensorId> inputs, outputs;
    Direction direction = Direction::fwd;
    /// The op of the same model that a backward one belongs to, or that a forward one computes again.
    std::optional<std::size_t> forward = {};

    bool is_recomputed() const { return direction == Direction::fwd && forward; }

    /// Those outputs that belong to operands of `use`: output, or in_place.
    std::vector<TensorId> outputs_of(OperandUse use) const;
};

struct Model {
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<OpNode> ops;
    /// What is given to it, and what it is run for; by name, as `--input` and `--dump-output` have them.
    std::vector<TensorId> inputs, outputs;

    /// What training minimises: its direction bwd turns the first of its inputs, in place, into that one's gradient.
    /// Not one of `ops` before with_backward (backward.h) makes it one.
    std::optional<OpNode> loss = {};
    /// Of each weight that the loss depends on, its gradient; empty without a backward.
    std::vector<std::pair<TensorId, TensorId>> gradients = {};
    /// An op updates weights, so that nobody may keep a copy of them in another layout.
    bool weights_change = false;
    /// So many of the first ops run once, before anything is timed, and what they make stays.
    std::size_t untimed_ops = 0;

    /// Elements of all weights; a tied weight counts once.
    std::int64_t parameter_count() const;
};

}  // namespace kbench
