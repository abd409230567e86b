// Chooses the fused attention kernel for a precision and a head size, and launches it.
#include "kernels/attention/attention.h"

#include <algorithm>

#include "kbench/error.h"
#include "kernels/attention/kernel.h"
#include "kernels/shared_memory.h"

namespace kbench::cuda {
namespace {

attention::Kernels kernels_of(Precision precision) {
    constexpr attention::Kernels (*families[])() = {attention::fp16_kernels, attention::bf16_kernels,
                                                    attention::tf32_kernels, attention::fp32_kernels,
                                                    attention::fp64_kernels};
    static_assert(std::size(families) == all_precisions.size());
    return families[static_cast<int>(precision)]();
}

/// The first kernel that fits the head size and the number of rows and whose tile fits this GPU's shared memory. A
/// kernel for a larger head size may fit where a smaller one's does not, because its tiles are smaller.
const attention::Kernel& kernel_for(const AttentionArguments& arguments) {
    const attention::Kernels kernels = kernels_of(arguments.precision);
    const std::int64_t rows =
        arguments.tile_rows > 0 ? arguments.tile_rows : arguments.batch * arguments.heads * arguments.seq;
    const int shared = shared_bytes_of_block();
    int least = 0;
    for (const attention::Kernel& kernel : kernels) {
        if (arguments.head_size > kernel.tile.head_size || rows > kernel.tile.most_rows) continue;
        if (kernel.smem_bytes <= shared) return kernel;
        least = least == 0 ? kernel.smem_bytes : std::min(least, kernel.smem_bytes);
    }
    const std::string of_heads = "attention with head_size " + std::to_string(arguments.head_size);
    if (least > 0)
        throw Unsupported(of_heads + ": the fused kernels need " + std::to_string(least) +
                          " bytes of shared memory for a block, this GPU has " + std::to_string(shared));
    throw Unsupported(of_heads + ": the fused kernels take at most " + std::to_string(kernels.back().tile.head_size));
}

}  // namespace

void attention_forward(const AttentionArguments& arguments, cudaStream_t stream) {
    kernel_for(arguments).launch(arguments, stream);
}

std::string attention_kernel_name(const AttentionArguments& arguments) {
    const auto& [family, tile, smem_bytes, launch] = kernel_for(arguments);
    return std::string(family) + '<' + std::string(name(arguments.precision)) + ',' + std::to_string(tile.head_size) +
           ',' + std::to_string(tile.query_rows) + 'x' + std::to_string(tile.keys) + 'x' +
           std::to_string(tile.key_groups) + '>';
}

}  // namespace kbench::cuda
