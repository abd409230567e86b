// Attention over a cache of keys and values on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64);
// shapes and layouts as in models/ops/; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/cached_attention.h"

namespace kbench::cpu {

/// Results do not depend on the number of threads. `workspace` has cached_attention_workspace bytes. Positions are
/// taken as they are: from 0 to op.past.
std::size_t cached_attention_workspace(DataType type, const CachedAttention& op);
void cached_attention(DataType type, const CachedAttention& op, In<"qkv"> qkv, Out<"key_cache"> key_cache,
                      Out<"value_cache"> value_cache, In<"positions", std::int32_t> positions, Out<"out"> out,
                      void* workspace);

}  // namespace kbench::cpu
