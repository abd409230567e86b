// Launchers of what is done to queries and keys before attention: the norm of each head, and its rotation. Device
// pointers; matrices row-major and dense; elements of the model's storage_type, arithmetic in fp32 (fp64 for fp64).
// Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/qk_norm.h"
#include "models/ops/rotary_embedding.h"

namespace kbench::cuda {

/// out may be qkv.
void qk_norm(DataType type, const QkNorm& op, In<"qkv"> qkv, In<"q_weight"> q_weight, In<"k_weight"> k_weight,
             Out<"out"> out, cudaStream_t stream);

/// The widest head that rotary_embedding takes: the table of its frequencies is an argument of the kernel.
inline constexpr std::int64_t rotary_embedding_max_head_size = 256;

/// out may be qkv. Throws Unsupported above rotary_embedding_max_head_size.
void rotary_embedding(DataType type, const RotaryEmbedding& op, In<"qkv"> qkv, In<"positions", std::int32_t> positions,
                      Out<"out"> out, cudaStream_t stream);

}  // namespace kbench::cuda
