// Connectionist temporal classification on the CPU, for every stored type. Arithmetic, losses and loss_scale are fp32
// (fp64 for fp64); shapes as in models/ops/; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/ctc.h"

namespace kbench::cpu {

/// Bytes of the workspace for ctc and for ctc_gradient.
std::size_t ctc_workspace(DataType type, const Ctc& op);
std::size_t ctc_gradient_workspace(DataType type, const Ctc& op);
/// Rows of logits lie `stride` >= labels elements apart.
void ctc(DataType type, const Ctc& op, std::int64_t stride, const void* logits, const std::int32_t* lengths,
         const std::int32_t* targets, const std::int32_t* target_lengths, void* losses, void* workspace);
/// Also overwrites the logits with their gradient; columns from labels to stride become 0. Results do not depend on
/// the number of threads.
void ctc_gradient(DataType type, const Ctc& op, std::int64_t stride, void* logits, const std::int32_t* lengths,
                  const std::int32_t* targets, const std::int32_t* target_lengths, const void* loss_scale, void* losses,
                  void* workspace);

}  // namespace kbench::cpu
