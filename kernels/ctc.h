// Launchers of connectionist temporal classification. Device pointers; elements have the model's storage_type.
// Arithmetic, losses and loss_scale are fp32 (fp64 for fp64). Nothing allocates or waits; launches go to
// `stream`. Sums have a fixed order, so that two runs give the same bits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/ctc.h"

namespace kbench::cuda {

/// Bytes of the workspaces of ctc_forward and ctc_gradient, which are aligned to 16 bytes.
std::size_t ctc_forward_workspace_bytes(DataType type, const Ctc& op);
std::size_t ctc_gradient_workspace_bytes(DataType type, const Ctc& op);
/// Rows of logits lie `stride` >= labels elements apart.
void ctc_forward(DataType type, const Ctc& op, Stride<"logits"> stride, In<"logits"> logits,
                 In<"lengths", std::int32_t> lengths, In<"targets", std::int32_t> targets,
                 In<"target_lengths", std::int32_t> target_lengths, Out<"losses"> losses, void* workspace,
                 cudaStream_t stream);
/// Also overwrites the logits with their gradient; columns from labels to stride become 0.
void ctc_gradient(DataType type, const Ctc& op, Stride<"logits"> stride, Out<"logits"> logits,
                  In<"lengths", std::int32_t> lengths, In<"targets", std::int32_t> targets,
                  In<"target_lengths", std::int32_t> target_lengths, In<"loss_scale"> loss_scale, Out<"losses"> losses,
                  void* workspace, cudaStream_t stream);

}  // namespace kbench::cuda
