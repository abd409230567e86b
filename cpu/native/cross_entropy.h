// Softmax with cross-entropy on the CPU, for every stored type. Arithmetic, losses and loss_scale are fp32 (fp64 for
// fp64); shapes as in models/ops/; nothing allocates.
#pragma once

#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/cross_entropy.h"

namespace kbench::cpu {

/// Rows of logits lie `stride` >= vocab elements apart.
void cross_entropy(DataType type, const CrossEntropy& op, std::int64_t stride, const void* logits,
                   const std::int32_t* tokens, void* losses);
/// Also overwrites the logits with their gradient; columns from vocab to stride become 0.
void cross_entropy_gradient(DataType type, const CrossEntropy& op, std::int64_t stride, void* logits,
                            const std::int32_t* tokens, const void* loss_scale, void* losses);

}  // namespace kbench::cpu
