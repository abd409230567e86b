// Launcher of a bias's backward. Device pointers; matrices row-major and dense; elements of the model's storage_type,
// arithmetic in fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/bias.h"

namespace kbench::cuda {

/// Bytes of the workspace of bias_backward: one row of partial sums per part.
std::size_t bias_backward_workspace_bytes(DataType type, const BiasAdd& op);

/// db[c] = sum over r of dy[r, c], plus what db[c] held if `op` accumulates; the same bits in every run. dy
/// [rows, width], db [width]; `workspace` has bias_backward_workspace_bytes and is aligned to 16 bytes.
void bias_backward(DataType type, const BiasAdd& op, In<"dy"> dy, Out<"db"> db, void* workspace, cudaStream_t stream);

}  // namespace kbench::cuda
