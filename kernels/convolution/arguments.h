// What kbench's own forward convolutions read and write, and what follows their sums.
#pragma once

#include <cstdint>

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

}  // namespace kbench::cuda
