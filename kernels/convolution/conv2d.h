// kbench's own forward convolutions, as implicit GEMMs: rows are filters, columns are output positions, sums run over
// taps. Device pointers; layouts as in models/ops/conv2d.h; sums in fp32 (fp64 for fp64). Nothing allocates or
// waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kbench/precision.h"
#include "kernels/convolution/arguments.h"
#include "models/ops/conv2d.h"

namespace kbench::cuda {

/// The kernel that runs, such as "conv2d_general<64>".
std::string conv2d_kernel_name(const Conv2d& op, Precision precision);
std::size_t conv2d_workspace(const Conv2d& op, Precision precision);
void conv2d_forward(Precision precision, const Conv2d& op, const Conv2dPointers& pointers,
                    const Conv2dEpilogue& epilogue, cudaStream_t stream);

}  // namespace kbench::cuda
