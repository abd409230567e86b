// What the families of fused attention kernels offer the dispatcher: a row for each tile they were built for.
// Only descriptions and launchers; the device code is in the family's own .cu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "kernels/attention/attention.h"

namespace kbench::cuda::attention {

/// Query rows (batch * heads * seq) up to which the time is bound by how well few tiles spread over the SMs, rather
/// than by the throughput of an SM: 300 to 400 rows for each of an A100's or H200's SMs.
inline constexpr std::int64_t few_rows = 40960;

/// How a kernel cuts the problem. A block owns `query_rows` rows of one head; its warps form `key_groups` groups, group
/// g takes key blocks g, g + key_groups, ... of `keys` each, and the groups' partial softmaxes are merged at the end.
struct Tile {
    int head_size;  ///< Columns computed; smaller heads are padded with zeros.
    int query_rows;
    int keys;
    int key_groups;     ///< 1, 2 or 4.
    int blocks_per_sm;  ///< Residency that the registers are limited for.
    /// The tile is for problems of at most this many query rows.
    std::int64_t most_rows = std::numeric_limits<std::int64_t>::max();
};

struct Kernel {
    std::string_view family;
    Tile tile;
    int smem_bytes;
    void (*launch)(const AttentionArguments&, cudaStream_t);
};

/// The kernels of one precision, by ascending head size, those for few rows first.
using Kernels = std::span<const Kernel>;

Kernels fp16_kernels();
Kernels bf16_kernels();
Kernels tf32_kernels();
Kernels fp32_kernels();
Kernels fp64_kernels();

}  // namespace kbench::cuda::attention
