// Chooses the backward attention kernels for a precision and a head size, and launches them.
#include <algorithm>

#include "kbench/error.h"
#include "kernels/attention/gradient_kernel.h"

namespace kbench::cuda {
namespace {

attention::GradientKernels kernels_of(Precision precision) {
    constexpr attention::GradientKernels (*families[])() = {
        attention::fp16_gradient_kernels, attention::bf16_gradient_kernels, attention::tf32_gradient_kernels,
        attention::fp32_gradient_kernels, attention::fp64_gradient_kernels};
    static_assert(std::size(families) == all_precisions.size());
    return families[static_cast<int>(precision)]();
}

/// The first kernel that holds the head and is meant for this many rows.
const attention::GradientKernel& kernel_for(const AttentionGradientArguments& arguments) {
    const attention::GradientKernels kernels = kernels_of(arguments.precision);
    const std::int64_t rows = arguments.batch * arguments.heads * arguments.seq;
    const auto fits = [&](const attention::GradientKernel& kernel) {
        return arguments.head_size <= kernel.tile.head_size && rows <= kernel.tile.most_rows;
    };
    const auto kernel = std::find_if(kernels.begin(), kernels.end(), fits);
    if (kernel == kernels.end())
        throw Unsupported("backward of attention with head_size " + std::to_string(arguments.head_size) +
                          ": the fused kernels take at most " + std::to_string(kernels.back().tile.head_size));
    return *kernel;
}

}  // namespace

std::size_t attention_gradient_workspace(const AttentionGradientArguments& arguments) {
    const std::int64_t padded = (arguments.seq + attention::stats_rows - 1) / attention::stats_rows *
                                attention::stats_rows * arguments.batch * arguments.heads;
    const std::size_t bytes = arguments.precision == Precision::fp64 ? sizeof(double) : sizeof(float);
    return 2 * static_cast<std::size_t>(padded) * bytes;
}

void attention_backward(const AttentionGradientArguments& arguments, cudaStream_t stream) {
    kernel_for(arguments).launch(arguments, stream);
}

std::string attention_gradient_kernel_name(const AttentionGradientArguments& arguments) {
    const auto& [family, tile, launch] = kernel_for(arguments);
    return std::string(family) + '<' + std::string(name(arguments.precision)) + ',' + std::to_string(tile.head_size) +
           ',' + std::to_string(tile.rows) + 'x' + std::to_string(tile.others) + '>';
}

}  // namespace kbench::cuda
