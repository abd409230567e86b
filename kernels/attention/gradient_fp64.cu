// Backward of fused causal attention in fp64 on the fp64 tensor cores.
#include "kernels/attention/gradient_8deep.cuh"

namespace kbench::cuda::attention {

struct Fp64GradientTiles {
    static constexpr GradientTile tiles[] = {
        {.head_size = 32, .rows = 64, .others = 16, .chunk = 8, .blocks_per_sm = 2},
        {.head_size = 64, .rows = 64, .others = 16, .chunk = 8, .blocks_per_sm = 2},
        // A kernel each for dk and dv, hence 8 products: the sums of one take 192 or 256 registers with those of the
        // other. 32 rows, because 64 would take more shared memory than an SM of an A100 has.
        {.head_size = 96, .rows = 32, .others = 16, .chunk = 8, .blocks_per_sm = 1},
        {.head_size = 128, .rows = 32, .others = 16, .chunk = 8, .blocks_per_sm = 1},
    };
};

GradientKernels fp64_gradient_kernels() {
    static constexpr auto rows = gradient_kernels_8deep<double, Fp64GradientTiles>(
        std::make_index_sequence<std::size(Fp64GradientTiles::tiles)>());
    return rows;
}

}  // namespace kbench::cuda::attention
