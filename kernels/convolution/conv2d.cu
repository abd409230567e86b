// Chooses the kernel of a convolution.
#include "kernels/convolution/conv2d.h"
#include "kernels/convolution/kernel.h"

namespace kbench::cuda {
namespace {

using convolution::Kernel;

/// The first kernel that takes the problem.
const Kernel& kernel_for(const Conv2d& op, Precision precision) {
    static const Kernel* const kernels[] = {&convolution::channels_last, &convolution::single_channel,
                                            &convolution::single_channel_ring, &convolution::direct_fp32,
                                            &convolution::general};
    for (const Kernel* kernel : kernels)
        if (kernel->takes(op, precision)) return *kernel;
    return convolution::general;
}

}  // namespace

std::string conv2d_kernel_name(const Conv2d& op, Precision precision) {
    return kernel_for(op, precision).name(op, precision);
}

std::size_t conv2d_workspace(const Conv2d& op, Precision precision) {
    return kernel_for(op, precision).workspace(op, precision);
}

void conv2d_forward(Precision precision, const Conv2d& op, const Conv2dPointers& pointers,
                    const Conv2dEpilogue& epilogue, cudaStream_t stream) {
    kernel_for(op, precision).launch(op, precision, pointers, epilogue, stream);
}

}  // namespace kbench::cuda
