// Attention of new tokens over a cache of keys and values (models/ops/cached_attention.h). Nothing here allocates or
// waits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/cached_attention.h"

namespace kbench::cuda {

inline constexpr std::int64_t cached_attention_max_head_size = 256;

/// Shapes and layouts as in models/ops/: device pointers to `type`, positions from 0 to op.past. The new keys and
/// values are written to the caches. Scores, softmax and sums are in fp32 (fp64 for fp64). Same bits in every run on
/// one kind of GPU: its number of SMs decides how keys are split. `workspace` has cached_attention_workspace bytes.
/// Throws Unsupported for a larger head size. The positions, and what the caches hold of the past, must not be written
/// by work that `stream` has still to do: the kernel asks for them while the one before it runs.
std::size_t cached_attention_workspace(DataType type, const CachedAttention& op);
void cached_attention(DataType type, const CachedAttention& op, In<"qkv"> qkv, Out<"key_cache"> key_cache,
                      Out<"value_cache"> value_cache, In<"positions", std::int32_t> positions, Out<"out"> out,
                      void* workspace, cudaStream_t stream);

}  // namespace kbench::cuda
