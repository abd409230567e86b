// Rung 5 in fp16 and bf16: mma.sync.m16n8k16, fp32 sums, fragments through ldmatrix. mma.cuh describes the rung.
#include "kernels/gemm/ladder/mma.cuh"

namespace kbench::cuda::ladder {
namespace {

/// The four lanes of a row exchange values so that lane t's value i becomes lane i's value t: a 4 x 4 transpose.
__device__ void transpose_quad(unsigned (&values)[4], int lane) {
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & bit) continue;
            const bool upper = lane & bit;
            const unsigned received = __shfl_xor_sync(0xffffffffu, upper ? values[i] : values[i | bit], bit);
            (upper ? values[i] : values[i | bit]) = received;
        }
}

template <class Element>
struct Core {
    using T = Element;
    using S = float;
    using FragmentX = unsigned[4];
    using FragmentW = unsigned[2];
    static constexpr int rows = 16, columns = 8, depth = 16, width = vector_width<T>;
    static constexpr int fragment_sets = 2;
    /// Warp tiles of 64 x 64 read 128 values for 4096 products. That keeps shared memory busy for 62 % of the time on
    /// an H200; mma.sync cannot use more.
    static constexpr Tile tiles[] = {
        // rows, columns, depth, rows and columns of a warp, stages, strip, blocks per SM, speed
        {128, 256, 64, 64, 64, 4, 16, 1, 100},
        {128, 256, 64, 64, 64, 3, 16, 1, 99},
        {128, 128, 64, 64, 64, 3, 16, 2, 93},
        {64, 64, 64, 32, 32, 4, 16, 3, 56},
    };

    /// ldmatrix reads one chunk of 8 neighbouring rows at a time.
    using BanksX = Swizzle<8>;

    template <int tile_depth, int products>
    static __device__ void read_x(FragmentX (&fragments)[products], const T* x, int row, int step, int lane) {
#pragma unroll
        for (int i = 0; i < products; ++i)
            ldmatrix_x4(fragments[i],
                        x + swizzled<BanksX, tile_depth, width>(row + i * 16 + lane % 16, step * 16 + lane / 16 * 8));
    }

    template <Tile tile, bool transposed>
    struct W {
        using Banks = Swizzle<8>;
        /// Two neighbouring products by one ldmatrix.
        template <int products>
        static __device__ void read(FragmentW (&fragments)[products], const T* w, int column, int step, int lane) {
#pragma unroll
            for (int i = 0; i < products; i += 2) {
                unsigned both[4];
                const int first = column + i * 8;
                if constexpr (transposed)
                    ldmatrix_x4(both, w + swizzled<Banks, tile.depth, width>(first + lane / 16 * 8 + lane % 8,
                                                                             step * 16 + lane / 8 % 2 * 8));
                else
                    ldmatrix_x4_transposed(
                        both, w + swizzled<Banks, tile.columns, width>(step * 16 + lane % 16, first + lane / 16 * 8));
#pragma unroll
                for (int j = 0; j < 4; ++j) fragments[i + j / 2][j % 2] = both[j];
            }
        }
    };

    static __device__ void multiply(Sums<S>& c, const FragmentX& x, const FragmentW& w) {
        Mma16Bit<T>::mma(c[0], c[1], c[2], c[3], x, w[0], w[1]);
    }

    /// Four lanes hold a row of each product, two columns each; after an exchange each holds a whole chunk.
    template <int down, int across>
    static __device__ void store(const Operands<T>& p, const Sums<S> (&sums)[down][across], int row, int column,
                                 int lane) {
#pragma unroll
        for (int i = 0; i < down; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int to_row = row + i * 16 + half * 8 + lane / 4;
#pragma unroll
                for (int j = 0; j < across; j += 4) {
                    unsigned pairs[4];
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        pairs[c] = Mma16Bit<T>::pack(sums[i][j + c][2 * half], sums[i][j + c][2 * half + 1]);
                    transpose_quad(pairs, lane);
                    Vector<T, width> chunk;
                    memcpy(chunk.elements, pairs, sizeof pairs);
                    const int to_column = column + (j + lane % 4) * 8;
                    if (to_row < p.m)
                        store_inside(p.out + to_row * p.ld_out + to_column, chunk, p.n - to_column, p.vector_out);
                }
            }
    }
};

}  // namespace

Kernels mma_fp16_kernels() { return MmaRows<Core<__half>>::kernels(); }
Kernels mma_bf16_kernels() { return MmaRows<Core<__nv_bfloat16>>::kernels(); }

}  // namespace kbench::cuda::ladder
