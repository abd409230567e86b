// A convolution kernel as a row: which problems it takes, and how it is launched. Internal to kernels/convolution/.
#pragma once

#include "kernels/convolution/conv2d.h"

namespace kbench::cuda::convolution {

struct Kernel {
    std::string (*name)(const Conv2d& op, Precision precision);
    bool (*takes)(const Conv2d& op, Precision precision);
    std::size_t (*workspace)(const Conv2d& op, Precision precision);
    void (*launch)(const Conv2d& op, Precision precision, const Conv2dPointers& pointers,
                   const Conv2dEpilogue& epilogue, cudaStream_t stream);
};

/// Any shape in any precision.
extern const Kernel general;

}  // namespace kbench::cuda::convolution
