// Memory for time: what a block of a model makes in the forward is not kept for its backward, but made again.
#pragma once

#include <cstddef>
#include <string_view>

#include "models/model.h"

namespace kbench {

/// The block that a layer is or belongs to: its name up to the first part that is a number, "layers.3" of
/// "layers.3.up"; empty where no part is one.
std::string_view enclosing_block(std::string_view layer);

/// Of each block of a model with a backward keeps only what ops outside of it read (Chen et al., "Training deep nets
/// with sublinear memory cost", 2016, with blocks for segments). In front of the block's backward stand those of its
/// forward ops again, in order, whose results are read there; they name the op that they repeat
/// (OpNode::is_recomputed) and make tensors of their own, called as the first ones with ".recomputed" behind. The first
/// `forward_ops` ops are the forward, from `first_backward` on are the backward's. Throws Unsupported where a model has
/// no blocks.
void recompute_blocks(Model& model, std::size_t forward_ops, std::size_t first_backward);

}  // namespace kbench
