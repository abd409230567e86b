// The convolution on the CPU, for every stored type. Arithmetic in fp32 (fp64 for fp64); shapes as in models/ops/.
#pragma once

#include <cstddef>

#include "kbench/precision.h"
#include "models/ops/conv2d.h"

namespace kbench::cpu {

/// Bytes that conv2d needs with as many threads as there may be now.
std::size_t conv2d_workspace(DataType type, const Conv2d& op);
/// bias: null where the op has none.
void conv2d(DataType type, const Conv2d& op, const void* x, const void* weight, const void* bias, void* out,
            void* workspace);

}  // namespace kbench::cpu
