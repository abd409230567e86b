// The rows that each family of fused attention kernels offers the dispatcher, one per tile that it was built for.
// Only descriptions and launchers; the device code is in the family's own .cu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "kernels/attention/arguments.h"

namespace kbench::cuda::attention {

/// Number of query rows (batch * heads * seq) up to which the time is bound by how evenly the few tiles spread over the
/// SMs, and beyond which it is bound by an SM's throughput: 300 to 400 rows per SM of an A100 or H200.
inline constexpr std::int64_t few_rows = 40960;

/// How a kernel cuts the problem. A block owns `query_rows` rows of one head. Its warps form `key_groups` groups; group
/// g takes key blocks g, g + key_groups, ... of `keys` keys. The groups' partial softmaxes are merged at the end.
struct Tile {
    int head_size;  ///< columns computed; smaller heads are padded with zeros
    int query_rows;
    int keys;
    int key_groups;     ///< 1, 2 or 4
    int blocks_per_sm;  ///< occupancy that the registers are limited for
    /// Most query rows of problems that the tile is meant for.
    std::int64_t most_rows = std::numeric_limits<std::int64_t>::max();
};

struct Kernel {
    std::string_view family;
    Tile tile;
    int smem_bytes;
    void (*launch)(const AttentionArguments&, cudaStream_t);
};

/// The kernels of one precision, by ascending head size; those for few rows come first.
using Kernels = std::span<const Kernel>;

Kernels fp16_kernels();
Kernels bf16_kernels();
Kernels tf32_kernels();
Kernels fp32_kernels();
Kernels fp64_kernels();

}  // namespace kbench::cuda::attention
