// A convolution's backward on the device. Device pointers; layouts as in models/ops/conv2d.h; sums in fp32 (fp64 for
// fp64), in the same order in every run. Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/conv2d.h"

namespace kbench::cuda {

/// Returns "" when the kernels take the shape, else why not in a few words: they count positions and taps in 32 bits.
std::string conv2d_gradient_refusal(const Conv2d& op);

/// The kernel that runs, such as "conv2d_dgrad_general<32>", or "conv2d_channels_last<32> of 2 classes of rows".
std::string conv2d_dgrad_kernel_name(const Conv2d& op, Precision precision);
std::size_t conv2d_dgrad_workspace(const Conv2d& op, Precision precision);
/// FLOPs of the op that the kernel does not execute; the cost of its transforms is not counted.
double conv2d_dgrad_spared_flops(const Conv2d& op, Precision precision);
void conv2d_dgrad(Precision precision, const Conv2d& op, In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx,
                  void* workspace, cudaStream_t stream);

std::string conv2d_wgrad_kernel_name(const Conv2d& op, Precision precision);
std::size_t conv2d_wgrad_workspace(const Conv2d& op, Precision precision);
/// db is null where the op has no bias. dw and db are added to where the op accumulates.
void conv2d_wgrad(Precision precision, const Conv2d& op, In<"x"> x, In<"dy"> dy, Out<"dw"> dw, Out<"db?"> db,
                  void* workspace, cudaStream_t stream);

}  // namespace kbench::cuda
