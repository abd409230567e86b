// Softmax with cross-entropy on the CPU, for every stored type. Arithmetic, losses and loss_scale are fp32 (fp64 for
// fp64); shapes as in models/ops/; nothing allocates.
#pragma once

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/cross_entropy.h"

namespace kbench::cpu {

/// Rows of logits lie `stride` >= vocab elements apart.
void cross_entropy(DataType type, const CrossEntropy& op, Stride<"logits"> stride, In<"logits"> logits,
                   In<"tokens", std::int32_t> tokens, Out<"losses"> losses);
/// Also overwrites the logits with their gradient; columns from vocab to stride become 0.
void cross_entropy_gradient(DataType type, const CrossEntropy& op, Stride<"logits"> stride, Out<"logits"> logits,
                            In<"tokens", std::int32_t> tokens, In<"loss_scale"> loss_scale, Out<"losses"> losses);

}  // namespace kbench::cpu
