// Batch norm in training and its backward on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64), sums
// of blocks fp64; shapes as in models/ops/batchnorm.h. Results do not depend on the threads; nothing allocates.
#pragma once

#include <cstddef>

#include "kbench/precision.h"
#include "models/ops/batchnorm.h"

namespace kbench::cpu {

/// Bytes of the workspace for either, aligned to 64 bytes.
std::size_t batch_norm_workspace(DataType type, const BatchNorm& op);

/// Updates running_mean and running_var in place; mean, rstd [channel_count()] are fp32 (fp64 for fp64). out may be x.
void batch_norm_in_training(DataType type, const BatchNorm& op, const void* x, const void* weight, const void* bias,
                            void* running_mean, void* running_var, void* mean, void* rstd, void* out, void* workspace);

/// Adds to dw and db where op.accumulates. dx may be dy.
void batch_norm_gradient(DataType type, const BatchNorm& op, const void* x, const void* dy, const void* weight,
                         const void* mean, const void* rstd, void* dx, void* dw, void* db, void* workspace);

}  // namespace kbench::cpu
