// The memory-bound steps on the CPU: our own vector loops over OpenMP threads, for every stored type (fp64 too).
// Arithmetic in fp32 (fp64 for fp64). Shapes as in models/op.h; nothing allocates.
#pragma once

#include <cstdint>

#include "models/base/precision.h"
#include "models/ops/list.h"

namespace kbench::cpu {

void embedding(DataType type, const Embedding& op, const std::int32_t* tokens, const void* wte, const void* wpe,
               void* out);
/// s = x + residual (residual may be null); sum_out = s when not null; out = norm(s) * weight + bias.
void layer_norm(DataType type, const LayerNorm& op, const void* x, const void* residual, const void* weight,
                const void* bias, void* sum_out, void* out);
/// out = x + bias, then GELU when `gelu`; bias may be null; in place allowed.
void bias_gelu(DataType type, std::int64_t rows, std::int64_t width, const void* x, const void* bias, bool gelu,
               void* out);
void residual_add(DataType type, std::int64_t count, const void* x, const void* residual, void* out);
/// In place, as models/op.h's ScaleMask; scores of `type`.
void scale_mask(DataType type, const ScaleMask& op, void* scores);
void softmax(DataType scores_type, DataType probabilities_type, const Softmax& op, const void* scores,
             void* probabilities);

}  // namespace kbench::cpu
