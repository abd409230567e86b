// Launcher of the RMS norm kernel. Device pointers; matrices row-major and dense; elements have the model's
// storage_type, arithmetic is fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/rmsnorm.h"

namespace kbench::cuda {

/// The widest row that rms_norm_forward keeps in registers.
inline constexpr std::int64_t rms_norm_max_width = 16384;

/// out = x * rstd * weight over each row, rstd = 1 / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich, NeurIPS 2019,
/// eq. 4). x, out [rows, width]; out may be x; weight [width]. Throws Unsupported above rms_norm_max_width.
void rms_norm_forward(DataType type, const RmsNorm& op, In<"x"> x, In<"weight"> weight, Out<"out"> out,
                      cudaStream_t stream);

}  // namespace kbench::cuda
