// A convolution kernel as a table row: what it takes and how it is launched. Internal to kernels/convolution/.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kbench/precision.h"
#include "kernels/convolution/arguments.h"
#include "models/ops/conv2d.h"

namespace kbench::cuda::convolution {

struct Kernel {
    std::string (*name)(const Conv2d& op, Precision precision);
    bool (*takes)(const Conv2d& op, Precision precision);
    std::size_t (*workspace)(const Conv2d& op, Precision precision);
    void (*launch)(const Conv2d& op, Precision precision, const Conv2dPointers& pointers,
                   const Conv2dEpilogue& epilogue, cudaStream_t stream);
};

/// fp16, bf16 and tf32: 16 or 32 channels and multiples, 32 filters, 11 taps wide at stride 1.
extern const Kernel channels_last;
/// fp16 and bf16: one channel, 32 filters, 11 taps wide, strides of 2.
extern const Kernel single_channel;
/// tf32 and fp64: the same shapes as single_channel.
extern const Kernel single_channel_ring;
/// fp32: 32 filters, 11 taps wide at stride 1 or 2.
extern const Kernel direct_fp32;
/// Any shape in any precision.
extern const Kernel general;

}  // namespace kbench::cuda::convolution
