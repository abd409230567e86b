// A kernel that makes dw, as a table row: what it takes and how it is launched. Internal to kernels/convolution/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kbench/precision.h"
#include "models/ops/conv2d.h"

namespace kbench::cuda::convolution {

struct WgradKernel {
    /// The kernel's name, such as "conv2d_wgrad_rows<3> in 18 parts".
    std::string (*name)(const Conv2d& op, Precision precision);
    bool (*takes)(const Conv2d& op, Precision precision);
    std::size_t (*workspace)(const Conv2d& op, Precision precision);
    void (*launch)(const Conv2d& op, Precision precision, const void* x, const void* dy, void* dw, void* workspace,
                   cudaStream_t stream);
};

/// Channels in whole groups (layout.cuh), filters in multiples of 32, 11 taps wide at stride 1 along the width.
extern const WgradKernel wgrad_rows;
/// All but fp64: one channel, at most 11 taps wide at stride 2 along the width.
extern const WgradKernel wgrad_single_channel;

}  // namespace kbench::cuda::convolution
