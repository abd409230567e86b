// Launchers of connectionist temporal classification. Device pointers; elements of the model's storage_type, arithmetic
// in fp32 (fp64 for fp64), in which losses and loss_scale are stored, too. Nothing allocates or waits; launches go to
// `stream`. Sums are made in one order: two runs have the same bits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/ctc.h"

namespace kbench::cuda {

/// Of ctc_forward and of ctc_gradient; at a 16-byte boundary.
std::size_t ctc_forward_workspace_bytes(DataType type, const Ctc& op);
std::size_t ctc_gradient_workspace_bytes(DataType type, const Ctc& op);
/// Rows of logits lie `stride` >= labels elements apart.
void ctc_forward(DataType type, const Ctc& op, std::int64_t stride, const void* logits, const std::int32_t* lengths,
                 const std::int32_t* targets, const std::int32_t* target_lengths, void* losses, void* workspace,
                 cudaStream_t stream);
/// Also turns the logits into their gradient, in place; what lies between labels and stride becomes 0.
void ctc_gradient(DataType type, const Ctc& op, std::int64_t stride, void* logits, const std::int32_t* lengths,
                  const std::int32_t* targets, const std::int32_t* target_lengths, const void* loss_scale, void* losses,
                  void* workspace, cudaStream_t stream);

/// For libraries that want the targets of all sequences one after another, and lengths in steps: `packed` has room for
/// batch * target of them, `steps` for batch.
void ctc_pack(const Ctc& op, const std::int32_t* lengths, const std::int32_t* targets,
              const std::int32_t* target_lengths, std::int32_t* packed, std::int32_t* steps, cudaStream_t stream);

}  // namespace kbench::cuda
