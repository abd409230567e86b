// Launchers of the causal mask and the softmax kernels. Device pointers; matrices row-major and dense; elements have
// the model's storage_type, arithmetic is fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/scale_mask.h"
#include "models/ops/softmax.h"

namespace kbench::cuda {

/// In place: scores[i, j] = scale * scores[i, j] for j <= i % seq, -inf elsewhere; scores [rows, seq],
/// rows = batch * heads * seq.
void scale_mask_forward(DataType type, const ScaleMask& op, Out<"scores"> scores, cudaStream_t stream);
/// probabilities[r, :] = softmax(scores[r, :]); entries of -inf give 0. `scores_type` may be fp32 while
/// `probabilities_type` is 16 bits (upcast); when both have the same size, they may share memory.
void softmax_forward(DataType scores_type, DataType probabilities_type, const Softmax& op, In<"scores"> scores,
                     Out<"probabilities"> probabilities, cudaStream_t stream);

}  // namespace kbench::cuda
