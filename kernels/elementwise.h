// Launchers of the elementwise kernels: bias, residual addition. Device pointers; matrices row-major and dense;
// elements have the model's storage_type, arithmetic is fp32 (fp64 for fp64). Nothing allocates or waits; launches go
// to `stream`.
#pragma once

#include <cuda_runtime.h>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/bias.h"
#include "models/ops/residual.h"

namespace kbench::cuda {

/// out = x + bias; out may be x. x, out [rows, width], bias [width].
void bias_add_forward(DataType type, const BiasAdd& op, In<"x"> x, In<"bias"> bias, Out<"out"> out,
                      cudaStream_t stream);
/// out = x + residual, all [rows, width]; out may be x or residual.
void residual_add_forward(DataType type, const ResidualAdd& op, In<"x"> x, In<"residual"> residual, Out<"out"> out,
                          cudaStream_t stream);

}  // namespace kbench::cuda
