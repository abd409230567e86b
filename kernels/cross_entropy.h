// Launchers of softmax with cross-entropy. Device pointers; elements of the model's storage_type, arithmetic in fp32
// (fp64 for fp64), in which losses and loss_scale are stored, too. Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/cross_entropy.h"

namespace kbench::cuda {

/// losses[r] of rows of logits that lie `stride` >= vocab elements apart; 0 for the last row of each sequence.
void cross_entropy_forward(DataType type, const CrossEntropy& op, std::int64_t stride, const void* logits,
                           const std::int32_t* tokens, void* losses, cudaStream_t stream);
/// Also turns the logits into their gradient, in place; what lies between vocab and stride becomes 0. Logits are read
/// once where a row fits into shared memory: 50257 of up to 32 bits on H100 and H200.
void cross_entropy_gradient(DataType type, const CrossEntropy& op, std::int64_t stride, void* logits,
                            const std::int32_t* tokens, const void* loss_scale, void* losses, cudaStream_t stream);

}  // namespace kbench::cuda
