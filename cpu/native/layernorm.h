// Layer norm on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64); shapes as in models/ops/; nothing
// allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/layernorm.h"

namespace kbench::cpu {

/// s = x + residual (residual may be null); sum_out = s unless null; out = norm(s) * weight + bias.
void layer_norm(DataType type, const LayerNorm& op, In<"x"> x, In<"residual?"> residual, In<"weight"> weight,
                In<"bias"> bias, Out<"sum?"> sum_out, Out<"out"> out);

/// Backward: dx (which may be dy or `past`), dw, db. `past` [rows, width] is the gradient that bypasses the layer norm;
/// it is added to dx and may be null. Results do not depend on the number of threads. `workspace` has
/// layer_norm_gradient_workspace bytes.
std::size_t layer_norm_gradient_workspace(DataType type, const LayerNorm& op);
void layer_norm_gradient(DataType type, const LayerNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight,
                         In<"dy_residual?"> past, Out<"dx"> dx, Out<"dw"> dw, Out<"db"> db, void* workspace);

}  // namespace kbench::cpu
