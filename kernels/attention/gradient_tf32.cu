// Backward of fused causal attention in tf32: fp32 in memory, operands rounded to tf32 as they are read, fp32
// accumulators.
#include "kernels/attention/gradient_8deep.cuh"

namespace kbench::cuda::attention {

struct Tf32GradientTiles {
    static constexpr GradientTile tiles[] = {
        {.head_size = 32, .rows = 64, .others = 32, .chunk = 16, .blocks_per_sm = 2},
        {.head_size = 64, .rows = 64, .others = 32, .chunk = 16, .blocks_per_sm = 2},
        // 16 rows at a time, or shared memory had room for one block an SM.
        {.head_size = 96, .rows = 64, .others = 16, .chunk = 16, .blocks_per_sm = 2},
        {.head_size = 128, .rows = 64, .others = 16, .chunk = 16, .blocks_per_sm = 2},
    };
};

GradientKernels tf32_gradient_kernels() {
    static constexpr auto rows = gradient_kernels_8deep<float, Tf32GradientTiles>(
        std::make_index_sequence<std::size(Tf32GradientTiles::tiles)>());
    return rows;
}

}  // namespace kbench::cuda::attention
