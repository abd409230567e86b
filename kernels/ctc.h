// Launchers of connectionist temporal classification. Device pointers; elements have the model's storage_type.
// Arithmetic, losses and loss_scale are fp32 (fp64 for fp64). Nothing allocates or waits; launches go to
// `stream`. Sums have a fixed order, so that two runs give the same bits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/ctc.h"

namespace kbench::cuda {

/// Bytes of the workspaces of ctc_forward and ctc_gradient, which are aligned to 16 bytes.
std::size_t ctc_forward_workspace_bytes(DataType type, const Ctc& op);
std::size_t ctc_gradient_workspace_bytes(DataType type, const Ctc& op);
/// Rows of logits lie `stride` >= labels elements apart.
void ctc_forward(DataType type, const Ctc& op, std::int64_t stride, const void* logits, const std::int32_t* lengths,
                 const std::int32_t* targets, const std::int32_t* target_lengths, void* losses, void* workspace,
                 cudaStream_t stream);
/// Also overwrites the logits with their gradient; columns from labels to stride become 0.
void ctc_gradient(DataType type, const Ctc& op, std::int64_t stride, void* logits, const std::int32_t* lengths,
                  const std::int32_t* targets, const std::int32_t* target_lengths, const void* loss_scale, void* losses,
                  void* workspace, cudaStream_t stream);

/// For libraries that want the targets of all sequences one after another and lengths in steps. `packed` has room for
/// batch * target targets, `steps` for batch.
void ctc_pack(const Ctc& op, const std::int32_t* lengths, const std::int32_t* targets,
              const std::int32_t* target_lengths, std::int32_t* packed, std::int32_t* steps, cudaStream_t stream);

}  // namespace kbench::cuda
