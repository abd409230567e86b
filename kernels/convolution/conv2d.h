// kbench's own forward convolutions, as implicit GEMMs: rows are filters, columns are output positions, sums run over
// taps. Device pointers; layouts as in models/ops/conv2d.h; sums in fp32 (fp64 for fp64). Nothing allocates or
// waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "kbench/precision.h"
#include "models/ops/conv2d.h"

namespace kbench::cuda {

/// A time mask after a convolution: element q of a row of image n becomes 0 from ceil(lengths[n] / frames_per_step) on.
struct Conv2dMask {
    const std::int32_t* lengths = nullptr;  ///< [batch]
    std::int64_t frames_per_step = 1;
};

/// What happens to a sum before it is rounded and stored. With `chain`: mask, batch norm, mask, Hardtanh, mask, as they
/// follow a convolution of spectrograms. Otherwise only the bias is added.
struct Conv2dEpilogue {
    const void* bias = nullptr;  ///< [out_channels], or null
    bool chain = false;
    Conv2dMask masks[3] = {};
    const void *weight = nullptr, *shift = nullptr, *mean = nullptr, *variance = nullptr;  ///< [out_channels] each
    double epsilon = 0, low = 0, high = 0;
};

struct Conv2dPointers {
    const void *x, *weight;
    void *out, *workspace;
};

/// The kernel that runs, such as "conv2d_general<64>".
std::string conv2d_kernel_name(const Conv2d& op, Precision precision);
std::size_t conv2d_workspace(const Conv2d& op, Precision precision);
void conv2d_forward(Precision precision, const Conv2d& op, const Conv2dPointers& pointers,
                    const Conv2dEpilogue& epilogue, cudaStream_t stream);

}  // namespace kbench::cuda
