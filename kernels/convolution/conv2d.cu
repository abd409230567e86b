// The choice of a convolution's kernel.
#include <algorithm>

#include "kernels/convolution/kernel.h"

namespace kbench::cuda {
namespace {

using convolution::Kernel;

/// The first that takes the problem.
const Kernel& kernel_for(const Conv2d& op, Precision precision) {
    static const Kernel* const kernels[] = {&convolution::channels_last,       &convolution::single_channel,
                                            &convolution::single_channel_ring, &convolution::winograd_fp32,
                                            &convolution::direct_fp32,         &convolution::general};
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

double conv2d_spared_flops(const Conv2d& op, Precision precision) {
    const Kernel& kernel = kernel_for(op, precision);
    return kernel.flops ? std::max(0.0, op.work(Direction::fwd).matrix_flops - kernel.flops(op)) : 0;
}

void conv2d_forward(Precision precision, const Conv2d& op, const Conv2dPointers& pointers,
                    const Conv2dEpilogue& epilogue, cudaStream_t stream) {
    kernel_for(op, precision).launch(op, precision, pointers, epilogue, stream);
}

}  // namespace kbench::cuda
