// Fused causal attention in fp64 on the fp64 tensor cores.
#include "kernels/attention/mma_8deep.cuh"

namespace kbench::cuda::attention {

struct Fp64Tiles {
    static constexpr Tile tiles[] = {
        {.head_size = 32, .query_rows = 64, .keys = 32, .key_groups = 1, .blocks_per_sm = 2},
        // 97 us and 365 us for 20 and 80 heads of 1024 rows on H200; the next row 118 and 348.
        {.head_size = 64, .query_rows = 32, .keys = 32, .key_groups = 2, .blocks_per_sm = 2, .most_rows = few_rows},
        {.head_size = 64, .query_rows = 64, .keys = 32, .key_groups = 1, .blocks_per_sm = 2},
        // 16 keys: the output alone takes 96 or 128 registers. Two groups, since they leave room for one block an SM.
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
