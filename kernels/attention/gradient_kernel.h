// The rows that each family of backward attention kernels offers the dispatcher, one per tile that it was built for.
// Only descriptions and launchers; the device code is in the family's own .cu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "kernels/attention/arguments.h"

namespace kbench::cuda::attention {

/// How a pair of kernels cuts the problem. A block owns `rows` rows of one head (queries in one kernel, keys in the
/// other) and reads the rows of the other kind, `others` at a time.
struct GradientTile {
    int head_size;  ///< columns computed; smaller heads are padded with zeros
    int rows;       ///< divides stats_rows
    int others;
    int chunk;          ///< how many of the others a warp holds scores for at a time
    int blocks_per_sm;  ///< occupancy that the registers are limited for
    /// Most query rows of problems that the tile is meant for.
    std::int64_t most_rows = std::numeric_limits<std::int64_t>::max();
};

/// The dq kernel writes stats for a number of rows that is padded to a multiple of this.
inline constexpr std::int64_t stats_rows = 128;

struct GradientKernel {
    std::string_view family;
    GradientTile tile;
    int smem_bytes;
    void (*launch)(const AttentionGradientArguments&, cudaStream_t);
};

/// The kernels of one precision, by ascending head size; those for few rows come first.
using GradientKernels = std::span<const GradientKernel>;

GradientKernels fp16_gradient_kernels();
GradientKernels bf16_gradient_kernels();
GradientKernels tf32_gradient_kernels();
GradientKernels fp32_gradient_kernels();
GradientKernels fp64_gradient_kernels();

}  // namespace kbench::cuda::attention
