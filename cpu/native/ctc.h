// Connectionist temporal classification on the CPU, for every stored type. Arithmetic, losses and loss_scale are fp32
// (fp64 for fp64); shapes as in models/ops/; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/ctc.h"

namespace kbench::cpu {

/// Bytes of the workspace for ctc and for ctc_gradient.
std::size_t ctc_workspace(DataType type, const Ctc& op);
std::size_t ctc_gradient_workspace(DataType type, const Ctc& op);
/// Rows of logits lie `stride` >= labels elements apart.
void ctc(DataType type, const Ctc& op, Stride<"logits"> stride, In<"logits"> logits,
         In<"lengths", std::int32_t> lengths, In<"targets", std::int32_t> targets,
         In<"target_lengths", std::int32_t> target_lengths, Out<"losses"> losses, void* workspace);
/// Also overwrites the logits with their gradient; columns from labels to stride become 0. Results do not depend on
/// the number of threads.
void ctc_gradient(DataType type, const Ctc& op, Stride<"logits"> stride, Out<"logits"> logits,
                  In<"lengths", std::int32_t> lengths, In<"targets", std::int32_t> targets,
                  In<"target_lengths", std::int32_t> target_lengths, In<"loss_scale"> loss_scale, Out<"losses"> losses,
                  void* workspace);

}  // namespace kbench::cpu
