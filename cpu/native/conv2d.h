// The convolution and its gradients on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64); shapes as in
// models/ops/.
#pragma once

#include <cstddef>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/conv2d.h"

namespace kbench::cpu {

/// Bytes of conv2d's workspace, for as many threads as there may be now.
std::size_t conv2d_workspace(DataType type, const Conv2d& op);
/// bias is null where the op has none.
void conv2d(DataType type, const Conv2d& op, In<"x"> x, In<"weight"> weight, In<"bias?"> bias, Out<"out"> out,
            void* workspace);

/// Results do not depend on the number of threads, neither here nor in wgrad.
std::size_t conv2d_dgrad_workspace(DataType type, const Conv2d& op);
void conv2d_dgrad(DataType type, const Conv2d& op, In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx, void* workspace);
/// db is null where the op has no bias. Adds to dw and db where the op accumulates.
std::size_t conv2d_wgrad_workspace(DataType type, const Conv2d& op);
void conv2d_wgrad(DataType type, const Conv2d& op, In<"x"> x, In<"dy"> dy, Out<"dw"> dw, Out<"db?"> db,
                  void* workspace);

}  // namespace kbench::cpu
