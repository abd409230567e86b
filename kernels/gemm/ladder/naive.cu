// Rung 1, naive: one thread computes one element of out, reading a row of x and a column of w from global memory.
//
// A multiply-add needs two loads, so the load units and not the arithmetic set the time: L1 is the busiest unit and FMA
// pipes are nearly idle. L1's latency shows before its roof does: warps wait for loads (long_scoreboard).
#include "kernels/gemm/ladder/launch.cuh"

namespace kbench::cuda::ladder {
namespace {

constexpr Tile tile{.rows = 8, .columns = 32, .stages = 0, .strip = 16};

/// The 32 lanes of a warp have neighbouring columns: all read one element of x and 32 neighbours of w.
template <class T>
__global__ __launch_bounds__(tile.rows* tile.columns) void gemm_naive(Operands<T> p) {
    const TilePosition position = tile_of_this_block<tile.rows, tile.columns, tile.strip>(p);
    const int row = position.row * tile.rows + static_cast<int>(threadIdx.x) / tile.columns;
    const int column = position.column * tile.columns + static_cast<int>(threadIdx.x) % tile.columns;
    if (row >= p.m || column >= p.n) return;
    using Sum = Arithmetic<T>;
    const T* x = p.x + row * p.ld_x;
    const T* w = p.w + column * p.w_column();
    Sum sum = 0;
    for (int i = 0; i < p.k; ++i, w += p.w_row()) sum += static_cast<Sum>(x[i]) * static_cast<Sum>(*w);
    p.out[row * p.ld_out + column] = static_cast<T>(sum);
}

template <class T>
struct Rows {
    static void launch(const GemmProblem& problem, const GemmPointers& pointers, cudaStream_t stream) {
        launch_tiles<gemm_naive<T>, T>(tile, tile.rows * tile.columns, 0, problem, pointers, stream);
    }
    static Kernels kernels() {
        static constexpr Kernel rows[] = {{"gemm_naive", tile, 0, launch}};
        return rows;
    }
};

}  // namespace

Kernels naive_kernels(Precision precision) { return plain_core_kernels<Rows>(precision); }

}  // namespace kbench::cuda::ladder
