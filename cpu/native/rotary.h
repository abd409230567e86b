// What is done to queries and keys before attention, on the CPU and for every stored type: the norm of each head, and
// its rotation. Arithmetic is fp32 (fp64 for fp64); shapes as in models/ops/; nothing allocates.
#pragma once

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/qk_norm.h"
#include "models/ops/rotary_embedding.h"

namespace kbench::cpu {

/// out may be qkv.
void qk_norm(DataType type, const QkNorm& op, In<"qkv"> qkv, In<"q_weight"> q_weight, In<"k_weight"> k_weight,
             Out<"out"> out);

/// out may be qkv.
void rotary_embedding(DataType type, const RotaryEmbedding& op, In<"qkv"> qkv, In<"positions", std::int32_t> positions,
                      Out<"out"> out);

}  // namespace kbench::cpu
