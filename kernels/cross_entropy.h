// Launchers of softmax with cross-entropy. Device pointers; elements have the model's storage_type. Arithmetic, losses
// and loss_scale are fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/cross_entropy.h"

namespace kbench::cuda {

/// Writes losses[r] of rows of logits that lie `stride` >= vocab elements apart; 0 for each sequence's last row.
void cross_entropy_forward(DataType type, const CrossEntropy& op, Stride<"logits"> stride, In<"logits"> logits,
                           In<"tokens", std::int32_t> tokens, Out<"losses"> losses, cudaStream_t stream);
/// Also overwrites the logits with their gradient; columns from vocab to stride become 0. Logits are read only
/// once where a row fits into shared memory: 50257 of up to 32 bits on H100 and H200.
void cross_entropy_gradient(DataType type, const CrossEntropy& op, Stride<"logits"> stride, Out<"logits"> logits,
                            In<"tokens", std::int32_t> tokens, In<"loss_scale"> loss_scale, Out<"losses"> losses,
                            cudaStream_t stream);

}  // namespace kbench::cuda
