// Launcher of the layer norm kernel. Device pointers; matrices row-major and dense; elements have the model's
// storage_type, arithmetic is fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/layernorm.h"

namespace kbench::cuda {

/// The widest row that layer_norm_forward keeps in registers.
inline constexpr std::int64_t layer_norm_max_width = 16384;

/// Layer norm fused with what precedes it: s = x + pre_bias + residual; sum_out = s; out = norm(s) * weight + bias.
/// x, residual, sum_out, out [rows, width]; pre_bias, weight, bias [width]. pre_bias, residual and sum_out may each be
/// null (then sum_out is not written). sum_out may alias residual or x. Statistics are taken over the unrounded fp32
/// sum, in two passes over registers.
void layer_norm_forward(DataType type, const LayerNorm& op, In<"x"> x, In<"pre_bias?"> pre_bias,
                        In<"residual?"> residual, In<"weight"> weight, In<"bias"> bias, Out<"sum?"> sum_out,
                        Out<"out"> out, cudaStream_t stream);

}  // namespace kbench::cuda
