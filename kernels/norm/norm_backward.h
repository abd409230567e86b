// Launchers of the backward of layer norm and of RMS norm. Device pointers; matrices row-major and dense; elements have
// the model's storage_type, arithmetic is fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/layernorm.h"
#include "models/ops/rmsnorm.h"

namespace kbench::cuda {

/// The widest row for which both keep the sums over the rows in registers.
inline constexpr std::int64_t norm_backward_max_width = 16384;

/// Bytes of the workspaces: partial sums of every SM of the current device.
std::size_t layer_norm_backward_workspace_bytes(DataType type, const LayerNorm& op);
std::size_t rms_norm_backward_workspace_bytes(DataType type, const RmsNorm& op);

/// With n = (x - mean) * rstd and g = dy * weight, means over the row: dx = rstd (g - mean(g) - n mean(g n)) +
/// residual_gradient; dw = sum of dy n and db = sum of dy over the rows. Mean and rstd are recomputed from x, in one
/// pass, or two where the mean is far from zero. If `op` accumulates, the sums are added to what dw and db hold.
/// residual_gradient is what bypasses the layer norm on the residual stream; it may be null. x, dy, residual_gradient,
/// dx [rows, width]; weight, dw, db [width]. dx may be dy or residual_gradient. Results have the same bits in every run
/// on one device. `workspace` has layer_norm_backward_workspace_bytes, aligned to 16. Throws Unsupported above
/// norm_backward_max_width.
void layer_norm_backward(DataType type, const LayerNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight,
                         In<"dy_residual?"> residual_gradient, Out<"dx"> dx, Out<"dw"> dw, Out<"db"> db,
                         void* workspace, cudaStream_t stream);

/// With n = x * rstd and g = dy * weight: dx = rstd (g - n mean(g n)), dw = sum of dy n over the rows. All else as in
/// layer_norm_backward.
void rms_norm_backward(DataType type, const RmsNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx,
                       Out<"dw"> dw, void* workspace, cudaStream_t stream);

}  // namespace kbench::cuda
