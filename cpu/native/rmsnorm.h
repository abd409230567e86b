// RMS norm on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64); shapes as in models/ops/;
// nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/rmsnorm.h"

namespace kbench::cpu {

/// out = x * rstd * weight over each row; x and out must not overlap. An output larger than the last-level caches is
/// written past them.
void rms_norm(DataType type, const RmsNorm& op, In<"x"> x, In<"weight"> weight, Out<"out"> out);

/// The same, but an output of more than `stream_above_bytes` bypasses the caches. For tests of both ways.
void rms_norm(DataType type, const RmsNorm& op, In<"x"> x, In<"weight"> weight, Out<"out"> out,
              std::int64_t stream_above_bytes);

/// Backward: dx (which may be dy) and dw. Results do not depend on the number of threads. `workspace` has
/// rms_norm_gradient_workspace bytes.
std::size_t rms_norm_gradient_workspace(DataType type, const RmsNorm& op);
void rms_norm_gradient(DataType type, const RmsNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx,
                       Out<"dw"> dw, void* workspace);

}  // namespace kbench::cpu
