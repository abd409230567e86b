// dw of convolutions of many channels, 11 taps wide. Internal to kernels/convolution/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kbench/precision.h"
#include "models/ops/conv2d.h"

namespace kbench::cuda::convolution {

/// Channels in whole groups (layout.cuh), filters in multiples of 32, 11 taps wide at stride 1 along the width.
bool wgrad_rows_takes(const Conv2d& op, Precision precision);
/// Such as "conv2d_wgrad_rows<3> in 18 parts".
std::string wgrad_rows_name(const Conv2d& op, Precision precision);
std::size_t wgrad_rows_workspace(const Conv2d& op, Precision precision);
void wgrad_rows(Precision precision, const Conv2d& op, const void* x, const void* dy, void* dw, void* workspace,
                cudaStream_t stream);

}  // namespace kbench::cuda::convolution
