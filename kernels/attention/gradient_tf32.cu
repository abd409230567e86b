// Backward of fused causal attention in tf32: fp32 in memory, operands rounded to tf32 as they are read, fp32
// accumulators.
//
// dS is P times a small difference of dP and D. Errors that both share cancel in it. dP is made of rounded dout and v,
// so D uses the rounded dout too, and its out is a mean of rounded v with weights that sum to one (tf32.cu). A
// simulation of the gradients of a 12-layer model at 3 x 17 tokens, GEMMs in tf32, gives errors relative to attention
// in fp32: 1.08 for the median parameter and 1.24 for the worst. D from the exact dout and weights that do not sum to
// one give 1.40 and 2.77. Operands split into two tf32 numbers would give 1.00 and 1.09, at the price of three times
// the products.
#include "kernels/attention/gradient_8deep.cuh"

namespace kbench::cuda::attention {

struct Tf32GradientTiles {
    static constexpr GradientTile tiles[] = {
        {.head_size = 32, .rows = 64, .others = 32, .chunk = 16, .blocks_per_sm = 2},
        {.head_size = 64, .rows = 64, .others = 32, .chunk = 16, .blocks_per_sm = 2},
        // 16 rows at a time: with more, shared memory fits only one block per SM.
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
