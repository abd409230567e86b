// Trades time for memory: what a block makes in the forward is not kept for its backward but computed again.
#pragma once

#include <cstddef>
#include <string_view>

#include "models/model.h"

namespace kbench {

/// The block that a layer is or belongs to: its name up to the first part that is a number, so "layers.3" for
/// "layers.3.up"; empty where no part is a number.
std::string_view enclosing_block(std::string_view layer);

/// Changes a model with a backward so that the forward keeps only tensors that ops outside their block read (Chen et
/// al., "Training deep nets with sublinear memory cost", 2016, with blocks as segments). In front of a block's backward
/// it repeats, in order, the forward ops whose results the backward reads. They name the op that they repeat
/// (OpNode::is_recomputed), and their tensors add ".recomputed" to the original names. Ops before `forward_ops` are the
/// forward, ops from `first_backward` on are the backward. Throws Unsupported where a model has
/// no blocks.
void recompute_blocks(Model& model, std::size_t forward_ops, std::size_t first_backward);

}  // namespace kbench
