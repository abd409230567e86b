// Fused causal attention in tf32: fp32 in memory, operands rounded to tf32 as they are read, fp32 accumulators.
// Probabilities are rounded before they are summed, not after: see online_softmax.
#include "kernels/attention/mma_8deep.cuh"

namespace kbench::cuda::attention {

struct Tf32Tiles {
    static constexpr Tile tiles[] = {
        {.head_size = 32, .query_rows = 64, .keys = 64, .key_groups = 2, .blocks_per_sm = 2},
        // 20 and 80 heads of 1024 rows take 37.7 us and 126 us on an H200; with the tile of the next row, 43.1 and 110.
        {.head_size = 64, .query_rows = 32, .keys = 32, .key_groups = 2, .blocks_per_sm = 3, .most_rows = few_rows},
        {.head_size = 64, .query_rows = 64, .keys = 64, .key_groups = 1, .blocks_per_sm = 2},
        // 32 keys, because output and q take 48 or 64 registers each.
        {.head_size = 96, .query_rows = 64, .keys = 32, .key_groups = 1, .blocks_per_sm = 2},
        {.head_size = 128, .query_rows = 64, .keys = 32, .key_groups = 1, .blocks_per_sm = 2},
    };
};

Kernels tf32_kernels() {
    static constexpr auto rows =
        kernels_8deep<float, Tf32Tiles>(std::make_index_sequence<std::size(Tf32Tiles::tiles)>());
    return rows;
}

}  // namespace kbench::cuda::attention
