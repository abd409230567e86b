// Launchers of batch norm in training and of its backward. Device pointers; shapes and layouts as in
// models/ops/batchnorm.h; elements have the model's storage_type; mean, rstd and arithmetic are fp32 (fp64 for fp64).
// Nothing allocates or waits; launches go to `stream`. Results have the same bits in every run.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/batchnorm.h"

namespace kbench::cuda {

/// Bytes of the workspace for either, aligned to 16 bytes: sums of the blocks of rows.
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
