// Rung 5, tensor cores: mma.sync on fragments that warps read out of swizzled tiles.
//
// Against async: one instruction of a warp multiplies 16 x 8 x 16 (fp16, bf16) or 16 x 8 x 8 elements (tf32, fp64),
// where an FMA of it took 32 products; a warp holds 64 x 64 sums (32 x 32 in fp64). Expect the tensor pipe to be the
// busiest unit and FMA pipes idle; the time falls until shared memory and L2 feed the tensor cores no faster.
//
// A precision is a `Core`: its element T and sum S, `tiles` (the table to tune), `depth` of a product, Banks* (how its
// tiles are swizzled), and functions that read fragments of x and w, multiply them and store sums.
#pragma once

#include <utility>

#include "kernels/gemm/ladder/launch.cuh"
#include "kernels/gemm/ladder/vectors.cuh"
#include "kernels/mma.cuh"

namespace kbench::cuda::ladder {

/// Sums of one 16 x 8 product in the order of mma_16x8x8.
template <class S>
using Sums = S[4];

template <class Core, int index, bool transposed>
__global__ __launch_bounds__(Core::tiles[index].threads(),
                             Core::tiles[index].blocks_per_sm) void gemm_mma(Operands<typename Core::T> p) {
    using T = typename Core::T;
    constexpr Tile tile = Core::tiles[index];
    constexpr int products_down = tile.warp_rows / 16, products_across = tile.warp_columns / 8;
    constexpr int steps = tile.depth / Core::depth;
    constexpr int x_elements = tile.rows * tile.depth, w_elements = tile.depth * tile.columns;
    static_assert(tile.depth * sizeof(T) == 128, "a row of x fills all banks once");
    static_assert(steps % 2 == 0, "fragments alternate between two sets of registers");
    using R = Ring<tile.stages>;
    using Layout = typename Core::template W<tile, transposed>;
    extern __shared__ __align__(128) unsigned char smem[];
    T* const x_tiles = reinterpret_cast<T*>(smem);
    T* const w_tiles = x_tiles + tile.stages * x_elements;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int row = warp % (tile.rows / tile.warp_rows) * tile.warp_rows;
    const int column = warp / (tile.rows / tile.warp_rows) * tile.warp_columns;
    const TilePosition position = tile_of_this_block<tile.rows, tile.columns, tile.strip>(p);
    const int first_row = position.row * tile.rows, first_column = position.column * tile.columns;
    const int tiles = (p.k + tile.depth - 1) / tile.depth;

    int copied = 0, copy_stage = 0;
    const auto copy_next = [&] {
        if (copied < tiles) {
            const int k = copied * tile.depth;
            copy_tile<tile.rows, tile.depth, tile.threads(), typename Core::BanksX>(
                x_tiles + copy_stage * x_elements,
                Source<T>{p.x + first_row * p.ld_x + k, p.ld_x, 1, p.m - first_row, p.k - k, p.vector_x}, thread);
            T* const w = w_tiles + copy_stage * w_elements;
            if constexpr (transposed)
                copy_tile<tile.columns, tile.depth, tile.threads(), typename Layout::Banks>(
                    w, Source<T>{p.w + first_column * p.ld_w + k, p.ld_w, 1, p.n - first_column, p.k - k, p.vector_w},
                    thread);
            else
                copy_tile<tile.depth, tile.columns, tile.threads(), typename Layout::Banks>(
                    w, Source<T>{p.w + k * p.ld_w + first_column, p.ld_w, 1, p.k - k, p.n - first_column, p.vector_w},
                    thread);
        }
        cp_async_commit();  // an empty group keeps the count
        ++copied;
        copy_stage = R::next(copy_stage);
    };

    Sums<typename Core::S> sums[products_down][products_across] = {};
    typename Core::FragmentX x[2][products_down];
    typename Core::FragmentW w[2][products_across];
    int stage = 0;
    const auto read_fragments = [&](int set, int step) {
#pragma unroll
        for (int i = 0; i < products_down; ++i)
            Core::template read_x<tile.depth>(x[set][i], x_tiles + stage * x_elements, row + i * 16, step, lane);
        Layout::read(w[set], w_tiles + stage * w_elements, column, step, lane);
    };

#pragma unroll
    for (int i = 0; i < R::ahead; ++i) copy_next();
    cp_async_wait<R::may_be_pending>();
    __syncthreads();
    read_fragments(0, 0);
    for (int i = 0; i < tiles; ++i) {
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            // The fragments of the next step arrive while this one's are multiplied.
            if (step + 1 == steps) {
                cp_async_wait<R::may_be_pending>();
                __syncthreads();  // the next tile has arrived, and all warps have read the last of this one
                stage = R::next(stage);
            }
            read_fragments((step + 1) % 2, (step + 1) % steps);
            if (step == 0) copy_next();  // into the stage that all warps left at the last barrier
#pragma unroll
            for (int down = 0; down < products_down; ++down)
#pragma unroll
                for (int across = 0; across < products_across; ++across)
                    Core::multiply(sums[down][across], x[step % 2][down], w[step % 2][across]);
        }
    }
#pragma unroll
    for (int down = 0; down < products_down; ++down)
        Core::store(p, sums[down], first_row + row + down * 16 + lane / 4, first_column + column, lane);
}

/// A row of kernels for each tile of Core's table.
template <class Core>
struct MmaRows {
    template <int index>
    static void launch(const GemmProblem& problem, const GemmPointers& pointers, cudaStream_t stream) {
        using T = typename Core::T;
        constexpr Tile tile = Core::tiles[index];
        const auto launch =
            problem.weight_transposed ? launch_tiles<gemm_mma<Core, index, true>, T>
                                      : launch_tiles<gemm_mma<Core, index, false>, T>;
        launch(tile, tile.threads(), tile.smem_bytes(sizeof(T)), problem, pointers, stream);
    }
    template <std::size_t... i>
    static Kernels kernels(std::index_sequence<i...>) {
        static constexpr Kernel rows[] = {
            {"gemm_mma", Core::tiles[i], Core::tiles[i].smem_bytes(sizeof(typename Core::T)), launch<i>}...};
        return rows;
    }
    static Kernels kernels() { return kernels(std::make_index_sequence<std::size(Core::tiles)>()); }
};

Kernels mma_fp16_kernels();
Kernels mma_bf16_kernels();
Kernels mma_tf32_kernels();
Kernels mma_fp64_kernels();

}  // namespace kbench::cuda::ladder
