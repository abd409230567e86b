// Launchers of the ops around convolutions and recurrent layers. Device pointers; shapes and layouts as in
// models/ops/; elements have the model's storage_type, arithmetic is fp32 (fp64 for fp64). Nothing allocates or waits;
// launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/hardtanh.h"
#include "models/ops/time_mask.h"
#include "models/ops/to_sequence.h"

namespace kbench::cuda {

/// out may be x. NaN stays NaN.
void hardtanh_forward(DataType type, const Hardtanh& op, In<"x"> x, Out<"out"> out, cudaStream_t stream);
/// out may be x. Masked elements are not read.
void time_mask_forward(DataType type, const TimeMask& op, In<"x"> x, In<"lengths", std::int32_t> lengths,
                       Out<"out"> out, cudaStream_t stream);
/// out must not be x.
void to_sequence_forward(DataType type, const ToSequence& op, In<"x"> x, Out<"out"> out, cudaStream_t stream);

/// dx may be dy or y. The backward of time_mask is its forward.
void hardtanh_backward(DataType type, const Hardtanh& op, In<"y"> y, In<"dy"> dy, Out<"dx"> dx, cudaStream_t stream);
/// dx must not be dy.
void to_sequence_backward(DataType type, const ToSequence& op, In<"dy"> dy, Out<"dx"> dx, cudaStream_t stream);

}  // namespace kbench::cuda
