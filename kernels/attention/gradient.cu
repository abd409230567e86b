// Chooses the backward attention kernels for a precision and a head size, and launches them.
#include <algorithm>

#include "kbench/error.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/gradient_kernel.h"
#include "kernels/shared_memory.h"

namespace kbench::cuda {
namespace {

attention::GradientKernels kernels_of(Precision precision) {
    constexpr attention::GradientKernels (*families[])() = {
        attention::fp16_gradient_kernels, attention::bf16_gradient_kernels, attention::tf32_gradient_kernels,
        attention::fp32_gradient_kernels, attention::fp64_gradient_kernels};
    static_assert(std::size(families) == all_precisions.size());
    return families[static_cast<int>(precision)]();
}

/// The first kernel that fits the head size and the number of rows and whose tile fits this GPU's shared memory. A
/// kernel for a larger head size may fit where a smaller one's does not, because its tiles are smaller.
const attention::GradientKernel& kernel_for(const AttentionGradientArguments& arguments) {
    const attention::GradientKernels kernels = kernels_of(arguments.precision);
    const std::int64_t rows = arguments.batch * arguments.heads * arguments.seq;
    const int shared = shared_bytes_of_block();
    int least = 0;
    for (const attention::GradientKernel& kernel : kernels) {
        if (arguments.head_size > kernel.tile.head_size || rows > kernel.tile.most_rows) continue;
        if (kernel.smem_bytes <= shared) return kernel;
        least = least == 0 ? kernel.smem_bytes : std::min(least, kernel.smem_bytes);
    }
    const std::string of_heads = "backward of attention with head_size " + std::to_string(arguments.head_size);
    if (least > 0)
        throw Unsupported(of_heads + ": the fused kernels need " + std::to_string(least) +
                          " bytes of shared memory for a block, this GPU has " + std::to_string(shared));
    throw Unsupported(of_heads + ": the fused kernels take at most " + std::to_string(kernels.back().tile.head_size));
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
    const auto& [family, tile, smem_bytes, launch] = kernel_for(arguments);
    return std::string(family) + '<' + std::string(name(arguments.precision)) + ',' + std::to_string(tile.head_size) +
           ',' + std::to_string(tile.rows) + 'x' + std::to_string(tile.others) + '>';
}

}  // namespace kbench::cuda
