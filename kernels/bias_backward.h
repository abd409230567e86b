// Launcher of a bias's backward. Device pointers; matrices row-major and dense; elements of the model's storage_type,
// arithmetic in fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kbench/precision.h"

namespace kbench::cuda {

/// Bytes of the workspace of bias_backward: partial sums of blocks of rows.
std::size_t bias_backward_workspace_bytes(DataType type, std::int64_t rows, std::int64_t width);

/// db[c] = sum over r of dy[r, c], and of db[c] before where it `accumulates`, with the same bits on every run. dy
/// [rows, width], db [width]; `workspace` of bias_backward_workspace_bytes at a 16-byte boundary.
void bias_backward(DataType type, const void* dy, void* db, void* workspace, std::int64_t rows, std::int64_t width,
                   cudaStream_t stream, bool accumulates = false);

}  // namespace kbench::cuda
