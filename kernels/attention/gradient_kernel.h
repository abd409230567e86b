// What the families of backward attention kernels offer the dispatcher: a row for each tile they were built for.
// Only descriptions and launchers; the device code is in the family's own .cu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "kernels/attention/attention.h"

namespace kbench::cuda::attention {

/// How a pair of kernels cuts the problem. A block owns `rows` rows of one head, queries in one kernel and keys in the
/// other, and reads the other kind, `others` rows at a time.
struct GradientTile {
    int head_size;  ///< Columns computed; smaller heads are padded with zeros.
    int rows;       ///< Divides stats_rows.
    int others;
    int chunk;          ///< Of the others, how many a warp has scores of at a time.
    int blocks_per_sm;  ///< Residency that the registers are limited for.
    /// The tile is for problems of at most this many query rows.
    std::int64_t most_rows = std::numeric_limits<std::int64_t>::max();
};

/// What the kernel of the queries leaves for that of the keys has its rows padded to a multiple of this.
inline constexpr std::int64_t stats_rows = 128;

struct GradientKernel {
    std::string_view family;
    GradientTile tile;
    int smem_bytes;
    void (*launch)(const AttentionGradientArguments&, cudaStream_t);
};

/// The kernels of one precision, by ascending head size, those for few rows first.
using GradientKernels = std::span<const GradientKernel>;

GradientKernels fp16_gradient_kernels();
GradientKernels bf16_gradient_kernels();
GradientKernels tf32_gradient_kernels();
GradientKernels fp32_gradient_kernels();
GradientKernels fp64_gradient_kernels();

}  // namespace kbench::cuda::attention
