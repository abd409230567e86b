// Layer norm on the CPU, for every stored type. Arithmetic in fp32 (fp64 for fp64); shapes as in models/ops/; nothing
// allocates.
#pragma once

#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/layernorm.h"

namespace kbench::cpu {

/// s = x + residual (residual may be null); sum_out = s when not null; out = norm(s) * weight + bias.
void layer_norm(DataType type, const LayerNorm& op, const void* x, const void* residual, const void* weight,
                const void* bias, void* sum_out, void* out);

}  // namespace kbench::cpu
