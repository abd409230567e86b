// Batch norm in training and its backward on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64), sums
// of blocks fp64; shapes as in models/ops/batchnorm.h. Results do not depend on the threads; nothing allocates.
#pragma once

#include <cstddef>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/batchnorm.h"

namespace kbench::cpu {

/// Bytes of the workspace for either, aligned to 64 bytes.
std::size_t batch_norm_workspace(DataType type, const BatchNorm& op);

/// Updates running_mean and running_var in place; mean, rstd [channel_count()] are fp32 (fp64 for fp64). out may be x.
void batch_norm_in_training(DataType type, const BatchNorm& op, In<"x"> x, In<"weight"> weight, In<"bias"> bias,
                            Out<"running_mean"> running_mean, Out<"running_var"> running_var, Out<"mean"> mean,
                            Out<"rstd"> rstd, Out<"out"> out, void* workspace);

/// Adds to dw and db where op.accumulates. dx may be dy.
void batch_norm_gradient(DataType type, const BatchNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight,
                         In<"mean"> mean, In<"rstd"> rstd, Out<"dx"> dx, Out<"dw"> dw, Out<"db"> db, void* workspace);

}  // namespace kbench::cpu
