// Launchers of batch norm, with running statistics and in training, and of its backward. Device pointers; shapes and
// layouts as in models/ops/batchnorm.h; elements have the model's storage_type; mean, rstd and arithmetic are fp32
// (fp64 for fp64). Nothing allocates or waits; launches go to `stream`. Results have the same bits in every run.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/batchnorm.h"

namespace kbench::cuda {

/// out = norm(x + residual) with the channels' running statistics; the sum is not rounded. `residual` may be null, and
/// is where op.channels > 0. out may be x or residual.
void batch_norm_forward(DataType type, const BatchNorm& op, In<"x"> x, In<"residual?"> residual, In<"weight"> weight,
                        In<"bias"> bias, In<"running_mean"> mean, In<"running_var"> variance, Out<"out"> out,
                        cudaStream_t stream);

/// Bytes of the workspace in training or backward, aligned to 16 bytes: sums of the blocks of rows.
std::size_t batch_norm_workspace_bytes(DataType type, const BatchNorm& op);

/// Updates running_mean and running_var in place. out may be x.
void batch_norm_in_training(DataType type, const BatchNorm& op, In<"x"> x, In<"weight"> weight, In<"bias"> bias,
                            Out<"running_mean"> running_mean, Out<"running_var"> running_var, Out<"mean"> mean,
                            Out<"rstd"> rstd, Out<"out"> out, void* workspace, cudaStream_t stream);

/// Adds to dw and db where op.accumulates. dx may be dy.
void batch_norm_backward(DataType type, const BatchNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight,
                         In<"mean"> mean, In<"rstd"> rstd, Out<"dx"> dx, Out<"dw"> dw, Out<"db"> db, void* workspace,
                         cudaStream_t stream);

}  // namespace kbench::cuda
