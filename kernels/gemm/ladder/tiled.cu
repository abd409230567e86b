// Rung 2, tiles in shared memory: a block first copies a 32 x 32 tile of x and one of w; then each thread sums the 32
// products of its element from them.
//
// Compared with rung 1: an element of x or w is read from global memory once per 32 products, not once per warp that
// needs it. Global load sectors fall 20 times (5 for 32 fp32 products become 1/4). Those loads now go to shared memory,
// whose queue becomes the limit (mio_throttle, short_scoreboard).
#include "kernels/gemm/ladder/launch.cuh"

namespace kbench::cuda::ladder {
namespace {

constexpr int side = 32;
constexpr Tile tile{.rows = side, .columns = side, .depth = side, .stages = 1, .strip = 8};

template <class T>
__global__ __launch_bounds__(side* side) void gemm_tiled(Operands<T> p) {
    // Each thread reads its row of x along k in whole vectors, because all lanes read the same. One more column keeps
    // the writes of a transposed w off a single bank.
    __shared__ __align__(16) T x_tile[side][side];
    __shared__ __align__(16) T w_tile[side][side + 1];
    const TilePosition position = tile_of_this_block<tile.rows, tile.columns, tile.strip>(p);
    const int y = static_cast<int>(threadIdx.x) / side, lane = static_cast<int>(threadIdx.x) % side;
    const int row = position.row * side + y, first_column = position.column * side;
    using Sum = Arithmetic<T>;
    Sum sum = 0;
    for (int k = 0; k < p.k; k += side) {
        // Elements outside the operands are zeros, which add nothing to any sum.
        x_tile[y][lane] = row < p.m && k + lane < p.k ? p.x[row * p.ld_x + k + lane] : T(0.0f);
        // Lanes run along the rows of w as stored.
        const int depth = p.w_transposed ? lane : y, column = p.w_transposed ? y : lane;
        const bool inside = k + depth < p.k && first_column + column < p.n;
        w_tile[depth][column] =
            inside ? p.w[(k + depth) * p.w_row() + (first_column + column) * p.w_column()] : T(0.0f);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < side; ++i) sum += static_cast<Sum>(x_tile[y][i]) * static_cast<Sum>(w_tile[i][lane]);
        __syncthreads();
    }
    if (row < p.m && first_column + lane < p.n) p.out[row * p.ld_out + first_column + lane] = static_cast<T>(sum);
}

template <class T>
struct Rows {
    static void launch(const GemmProblem& problem, const GemmPointers& pointers, cudaStream_t stream) {
        launch_tiles<gemm_tiled<T>, T>(tile, side * side, 0, problem, pointers, stream);
    }
    static Kernels kernels() {
        static constexpr Kernel rows[] = {{"gemm_tiled", tile, 0, launch}};
        return rows;
    }
};

}  // namespace

Kernels tiled_kernels(Precision precision) { return plain_core_kernels<Rows>(precision); }

}  // namespace kbench::cuda::ladder
