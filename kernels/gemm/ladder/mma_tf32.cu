// Rung 5 in tf32: mma.sync.m16n8k8 on fp32 operands, fp32 sums. mma.cuh describes the rung.
//
// ldmatrix cannot transpose 32-bit elements. So the transpose of out is computed, w^T x^T: a lane's fragment of w^T has
// rows g and g + 8 at two depths, and we may choose which columns of w those rows are. As two neighbouring columns,
// each 8-byte read along a row of w puts two registers where the product wants them, and sums are stored two by two.
// 16-byte reads, for two products at once, give four registers in a row that two products share. The compiler then
// moves each: 5.2 instructions per product in all, instead of 2.4.
//
// Operands go to the tensor cores unrounded. These ignore the last 13 bits, as wgmma does with operands in shared
// memory. Rounding would take three instructions per element (cvt.rna.tf32 on sm_80 and sm_90), 96 for the 32
// products of a step.
#include "kernels/gemm/ladder/mma.cuh"

namespace kbench::cuda::ladder {
namespace {

struct Core {
    using T = float;
    using S = float;
    using FragmentX = unsigned[2];
    using FragmentW = float[4];
    static constexpr int rows = 8, columns = 16, depth = 8, width = vector_width<T>;
    static constexpr int fragment_sets = 2;
    static constexpr Tile tiles[] = {
        // rows, columns, depth, rows and columns of a warp, stages, strip, blocks per SM, speed
        {128, 256, 32, 64, 64, 4, 16, 1, 99},
        {128, 256, 32, 64, 64, 3, 16, 1, 100},
        {128, 128, 32, 64, 64, 3, 16, 2, 84},
        {64, 64, 32, 32, 32, 4, 16, 3, 54},
    };

    /// ldmatrix reads one chunk, here 4 elements along k, of 8 neighbouring rows at a time.
    using BanksX = Swizzle<8>;

    template <int tile_depth, int products>
    static __device__ void read_x(FragmentX (&fragments)[products], const T* x, int row, int step, int lane) {
#pragma unroll
        for (int i = 0; i < products; i += 2) {
            unsigned both[4];
            ldmatrix_x4(both, x + swizzled<BanksX, tile_depth, width>(row + i * 8 + lane / 16 * 8 + lane % 8,
                                                                      step * 8 + lane / 8 % 2 * 4));
#pragma unroll
            for (int j = 0; j < 4; ++j) fragments[i + j / 2][j % 2] = both[j];
        }
    }

    /// w as it is: lanes read 8 bytes each; 16 lanes read two neighbouring chunks of 4 neighbouring rows at a time.
    template <Tile tile, bool transposed>
    struct W {
        using Banks = Swizzle<4>;
        template <int products>
        static __device__ void read(FragmentW (&fragments)[products], const T* w, int column, int step, int lane) {
#pragma unroll
            for (int i = 0; i < products; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const auto pair =
                        Vector<T, 2>::load(w + swizzled<Banks, tile.columns, width>(step * 8 + half * 4 + lane % 4,
                                                                                    column + i * 16 + lane / 4 * 2));
                    fragments[i][2 * half] = pair.elements[0];
                    fragments[i][2 * half + 1] = pair.elements[1];
                }
        }
    };
    /// w transposed: ldmatrix reads one chunk of 8 rows, 2 apart, at a time.
    template <Tile tile>
    struct W<tile, true> {
        using Banks = Swizzle<8, 2>;
        template <int products>
        static __device__ void read(FragmentW (&fragments)[products], const T* w, int column, int step, int lane) {
#pragma unroll
            for (int i = 0; i < products; ++i) {
                unsigned all[4];
                ldmatrix_x4(all, w + swizzled<Banks, tile.depth, width>(column + i * 16 + lane % 8 * 2 + lane / 8 % 2,
                                                                        step * 8 + lane / 16 * 4));
#pragma unroll
                for (int j = 0; j < 4; ++j) fragments[i][j] = __uint_as_float(all[j]);
            }
        }
    };

    static __device__ void multiply(Sums<S>& c, const FragmentX& x, const FragmentW& w) {
        mma_16x8x8(c[0], c[1], c[2], c[3], w, __uint_as_float(x[0]), __uint_as_float(x[1]));
    }

    template <int down, int across>
    static __device__ void store(const Operands<T>& p, const Sums<S> (&sums)[down][across], int row, int column,
                                 int lane) {
        store_transposed(p, sums, row, column, lane);
    }
};

}  // namespace

Kernels mma_tf32_kernels() { return MmaRows<Core>::kernels(); }

}  // namespace kbench::cuda::ladder
