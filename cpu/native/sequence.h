// The ops around convolutions and recurrent layers on the CPU, for every stored type. Arithmetic is fp32 (fp64 for
// fp64); shapes as in models/ops/; nothing allocates.
#pragma once

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/batchnorm.h"
#include "models/ops/hardtanh.h"
#include "models/ops/time_mask.h"
#include "models/ops/to_sequence.h"

namespace kbench::cpu {

/// out may be x.
void batch_norm(DataType type, const BatchNorm& op, In<"x"> x, In<"weight"> weight, In<"bias"> bias,
                In<"running_mean"> mean, In<"running_var"> variance, Out<"out"> out);
/// out may be x.
void hardtanh(DataType type, const Hardtanh& op, const void* x, void* out);
/// out may be x.
void time_mask(DataType type, const TimeMask& op, const void* x, const std::int32_t* lengths, void* out);
void to_sequence(DataType type, const ToSequence& op, const void* x, void* out);

/// dx may be dy or y. The gradient of time_mask is time_mask.
void hardtanh_gradient(DataType type, const Hardtanh& op, In<"y"> y, In<"dy"> dy, Out<"dx"> dx);
void to_sequence_gradient(DataType type, const ToSequence& op, const void* dy, void* dx);

}  // namespace kbench::cpu
