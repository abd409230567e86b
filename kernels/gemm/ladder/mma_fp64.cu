// Rung 5 in fp64: mma.sync.m16n8k8 (four m8n8k4 before sm_90), fp64 sums. mma.cuh describes the rung.
//
// As in mma_tf32.cu, it computes the transpose of out, w^T x^T, with columns of w and depths in an order of our own:
// depths t and t + 4 of a product are neighbours along k, rows g and g + 8 of w^T are neighbouring columns of w. So
// each read is 16 bytes wide and puts its registers where the product wants them.
#include "kernels/gemm/ladder/mma.cuh"

namespace kbench::cuda::ladder {
namespace {

struct Core {
    using T = double;
    using S = double;
    using FragmentX = double[2];
    using FragmentW = double[4];
    static constexpr int rows = 8, columns = 16, depth = 8, width = vector_width<T>;
    static constexpr int fragment_sets = 1;
    /// Warp tiles of 64 x 32 read 96 values for 2048 products, 32 x 32 read 64 for 1024: 5.3 and 4 FLOP per byte. The
    /// tensor cores of sm_90 and sm_80 do 2 and 1 per byte that shared memory delivers. Few warps are enough: each
    /// has 16 products in flight, of 32 cycles each.
    static constexpr Tile tiles[] = {
        // rows, columns, depth, rows and columns of a warp, stages, strip, blocks per SM, speed
        {128, 128, 16, 64, 32, 4, 16, 1, 100},
        {128, 64, 16, 64, 32, 4, 16, 2, 98},
        {64, 64, 16, 32, 32, 4, 16, 2, 94},
    };

    /// Lanes read 4 neighbouring chunks of 2 neighbouring rows at a time.
    using BanksX = Swizzle<2>;

    template <int tile_depth, int products>
    static __device__ void read_x(FragmentX (&fragments)[products], const T* x, int row, int step, int lane) {
#pragma unroll
        for (int i = 0; i < products; ++i) {
            const auto pair = Vector<T, 2>::load(
                x + swizzled<BanksX, tile_depth, width>(row + i * 8 + lane / 4, step * 8 + lane % 4 * 2));
            fragments[i][0] = pair.elements[0];
            fragments[i][1] = pair.elements[1];
        }
    }

    /// w as it is: lanes read two neighbouring chunks of 4 rows, 2 apart, at a time.
    template <Tile tile, bool transposed>
    struct W {
        using Banks = Swizzle<4, 2>;
        template <int products>
        static __device__ void read(FragmentW (&fragments)[products], const T* w, int column, int step, int lane) {
#pragma unroll
            for (int i = 0; i < products; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const auto pair =
                        Vector<T, 2>::load(w + swizzled<Banks, tile.columns, width>(step * 8 + lane % 4 * 2 + half,
                                                                                    column + i * 16 + lane / 4 * 2));
                    fragments[i][2 * half] = pair.elements[0];
                    fragments[i][2 * half + 1] = pair.elements[1];
                }
        }
    };
    /// w transposed: lanes read 4 neighbouring chunks of 2 rows, 2 apart, at a time.
    template <Tile tile>
    struct W<tile, true> {
        using Banks = Swizzle<2, 2>;
        template <int products>
        static __device__ void read(FragmentW (&fragments)[products], const T* w, int column, int step, int lane) {
#pragma unroll
            for (int i = 0; i < products; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const auto pair =
                        Vector<T, 2>::load(w + swizzled<Banks, tile.depth, width>(column + i * 16 + lane / 4 * 2 + half,
                                                                                  step * 8 + lane % 4 * 2));
                    fragments[i][half] = pair.elements[0];
                    fragments[i][2 + half] = pair.elements[1];
                }
        }
    };

    static __device__ void multiply(Sums<S>& c, const FragmentX& x, const FragmentW& w) {
        mma_16x8x8(c[0], c[1], c[2], c[3], w, x[0], x[1]);
    }

    template <int down, int across>
    static __device__ void store(const Operands<T>& p, const Sums<S> (&sums)[down][across], int row, int column,
                                 int lane) {
        store_transposed(p, sums, row, column, lane);
    }
};

}  // namespace

Kernels mma_fp64_kernels() { return MmaRows<Core>::kernels(); }

}  // namespace kbench::cuda::ladder
