// Launchers of the ops around convolutions and recurrent layers. Device pointers; shapes and layouts as in
// models/ops/; elements have the model's storage_type, arithmetic is fp32 (fp64 for fp64). Nothing allocates or waits;
// launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/batchnorm.h"
#include "models/ops/hardtanh.h"
#include "models/ops/time_mask.h"
#include "models/ops/to_sequence.h"

namespace kbench::cuda {

/// out = norm(x + residual) with the channels' running statistics; the sum is not rounded. `residual` may be null, and
/// is where op.channels > 0. out may be x or residual.
void batch_norm_forward(DataType type, const BatchNorm& op, const void* x, const void* residual, const void* weight,
                        const void* bias, const void* mean, const void* variance, void* out, cudaStream_t stream);
/// out may be x. NaN stays NaN.
void hardtanh_forward(DataType type, const Hardtanh& op, const void* x, void* out, cudaStream_t stream);
/// out may be x. Masked elements are not read.
void time_mask_forward(DataType type, const TimeMask& op, const void* x, const std::int32_t* lengths, void* out,
                       cudaStream_t stream);
/// out must not be x.
void to_sequence_forward(DataType type, const ToSequence& op, const void* x, void* out, cudaStream_t stream);

/// dx may be dy or y. The backward of time_mask is its forward.
void hardtanh_backward(DataType type, const Hardtanh& op, const void* y, const void* dy, void* dx, cudaStream_t stream);
/// dx must not be dy.
void to_sequence_backward(DataType type, const ToSequence& op, const void* dy, void* dx, cudaStream_t stream);

}  // namespace kbench::cuda
