// Chooses the fused attention kernel for a precision and a head size, and launches it.
#include "kernels/attention/attention.h"

#include <algorithm>

#include "kbench/error.h"
#include "kernels/attention/kernel.h"

namespace kbench::cuda {
namespace {

attention::Kernels kernels_of(Precision precision) {
    constexpr attention::Kernels (*families[])() = {attention::fp16_kernels, attention::bf16_kernels,
                                                    attention::tf32_kernels, attention::fp32_kernels,
                                                    attention::fp64_kernels};
    static_assert(std::size(families) == all_precisions.size());
    return families[static_cast<int>(precision)]();
}

/// The first kernel that holds the head and is meant for this many rows.
const attention::Kernel& kernel_for(const AttentionArguments& arguments) {
    const attention::Kernels kernels = kernels_of(arguments.precision);
    const std::int64_t rows = arguments.batch * arguments.heads * arguments.seq;
    const auto fits = [&](const attention::Kernel& kernel) {
        return arguments.head_size <= kernel.tile.head_size && rows <= kernel.tile.most_rows;
    };
    const auto kernel = std::find_if(kernels.begin(), kernels.end(), fits);
    if (kernel == kernels.end())
        throw Unsupported("attention with head_size " + std::to_string(arguments.head_size) +
                          ": the fused kernels take at most " + std::to_string(kernels.back().tile.head_size));
    return *kernel;
}

}  // namespace

void attention_forward(const AttentionArguments& arguments, cudaStream_t stream) {
    kernel_for(arguments).launch(arguments, stream);
}

std::string attention_kernel_name(const AttentionArguments& arguments) {
    const auto& [family, tile, launch] = kernel_for(arguments);
    return std::string(family) + '<' + std::string(name(arguments.precision)) + ',' + std::to_string(tile.head_size) +
           ',' + std::to_string(tile.query_rows) + 'x' + std::to_string(tile.keys) + 'x' +
           std::to_string(tile.key_groups) + '>';
}

}  // namespace kbench::cuda
