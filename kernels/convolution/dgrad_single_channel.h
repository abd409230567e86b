// dx of convolutions of one channel at stride 2 along the width. Internal to kernels/convolution/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kbench/precision.h"
#include "models/ops/conv2d.h"

namespace kbench::cuda::convolution {

inline constexpr const char* dgrad_single_channel_name = "conv2d_dgrad_single_channel";

bool dgrad_single_channel_takes(const Conv2d& op, Precision precision);
std::size_t dgrad_single_channel_workspace(const Conv2d& op, Precision precision);
/// Device pointers as in conv2d_dgrad.
void dgrad_single_channel(Precision precision, const Conv2d& op, const void* dy, const void* weight, void* dx,
                          void* workspace, cudaStream_t stream);

}  // namespace kbench::cuda::convolution
