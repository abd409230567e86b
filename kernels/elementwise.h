// Launchers of the elementwise kernels: bias, residual addition. Device pointers; matrices row-major and dense;
// elements have the model's storage_type, arithmetic is fp32 (fp64 for fp64). Nothing allocates or waits; launches go
// to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/precision.h"

namespace kbench::cuda {

/// out = x + bias; out may be x. x, out [rows, width], bias [width].
void bias_add_forward(DataType type, const void* x, const void* bias, void* out, std::int64_t rows, std::int64_t width,
                      cudaStream_t stream);
/// out = x + residual for `count` elements; out may be x.
void residual_add_forward(DataType type, const void* x, const void* residual, void* out, std::int64_t count,
                          cudaStream_t stream);

}  // namespace kbench::cuda
