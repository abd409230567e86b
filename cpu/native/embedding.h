// Token and position embedding on the CPU, for every stored type. Arithmetic in fp32 (fp64 for fp64); shapes as in
// models/ops/; nothing allocates.
#pragma once

#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/embedding.h"

namespace kbench::cpu {

void embedding(DataType type, const Embedding& op, const std::int32_t* tokens, const void* wte, const void* wpe,
               void* out);

}  // namespace kbench::cpu
