// dx of convolutions 11 taps wide in fp32 by Winograd's minimal filtering. Internal to kernels/convolution/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kbench/precision.h"
#include "models/ops/conv2d.h"

namespace kbench::cuda::convolution {

bool winograd_takes(const Conv2d& op, Precision precision);
std::string winograd_name(const Conv2d& op);
std::size_t winograd_workspace(const Conv2d& op);
/// Of its products, without those with padding.
double winograd_flops(const Conv2d& op);
/// Device pointers as in conv2d_dgrad.
void winograd_dgrad(const Conv2d& op, const float* dy, const float* weight, float* dx, void* workspace,
                    cudaStream_t stream);

}  // namespace kbench::cuda::convolution
