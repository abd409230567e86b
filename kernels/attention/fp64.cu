// Fused causal attention in fp64 on the fp64 tensor cores.
#include "kernels/attention/mma_8deep.cuh"

namespace kbench::cuda::attention {

struct Fp64Tiles {
    static constexpr Tile tiles[] = {
        {.head_size = 32, .query_rows = 64, .keys = 32, .key_groups = 1, .blocks_per_sm = 2},
        // 20 and 80 heads of 1024 rows take 97 us and 365 us on an H200; with the tile of the next row, 118 and 348.
        {.head_size = 64, .query_rows = 32, .keys = 32, .key_groups = 2, .blocks_per_sm = 2, .most_rows = few_rows},
        {.head_size = 64, .query_rows = 64, .keys = 32, .key_groups = 1, .blocks_per_sm = 2},
        // 16 keys, because the output alone takes 96 or 128 registers. Two groups, because only one block fits an SM.
        {.head_size = 96, .query_rows = 64, .keys = 16, .key_groups = 2, .blocks_per_sm = 1},
        {.head_size = 128, .query_rows = 64, .keys = 16, .key_groups = 2, .blocks_per_sm = 1},
    };
};

Kernels fp64_kernels() {
    static constexpr auto rows =
        kernels_8deep<double, Fp64Tiles>(std::make_index_sequence<std::size(Fp64Tiles::tiles)>());
    return rows;
}

}  // namespace kbench::cuda::attention
