// A kernel that makes dx, as a table row: what it takes and how it is launched. Internal to kernels/convolution/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kbench/precision.h"
#include "models/ops/conv2d.h"

namespace kbench::cuda::convolution {

struct DgradKernel {
    /// The kernel's name, such as "conv2d_dgrad_general<32>".
    std::string (*name)(const Conv2d& op, Precision precision);
    bool (*takes)(const Conv2d& op, Precision precision);
    std::size_t (*workspace)(const Conv2d& op, Precision precision);
    /// Device pointers as in conv2d_dgrad.
    void (*launch)(const Conv2d& op, Precision precision, const void* dy, const void* weight, void* dx, void* workspace,
                   cudaStream_t stream);
    /// FLOPs that it executes, without padding; null where it executes all of the op's.
    double (*flops)(const Conv2d& op) = nullptr;
};

/// fp32: 32 channels, 11 taps wide at stride 1 along the width, at least 16 filters, rows that fill its tiles.
extern const DgradKernel dgrad_winograd;
/// All but fp64: one channel, at most 11 taps wide at stride 2 along the width.
extern const DgradKernel dgrad_single_channel;
/// Stride 1 along the width, where forward kernels (kernel.h) take the convolutions of dy that make dx.
extern const DgradKernel dgrad_by_forward;

}  // namespace kbench::cuda::convolution
