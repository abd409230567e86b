// Rung 5, tensor cores: mma.sync on fragments that warps read out of swizzled tiles.
//
// Compared with rung 4: one warp instruction multiplies 16 x 8 x 16 (fp16, bf16) or 16 x 8 x 8 elements (tf32, fp64),
// where a warp's FMA does 32 products. A warp holds 64 x 64 sums (32 x 32 in fp64). Expect the tensor pipe to be the
// busiest unit and FMA pipes to be idle. The time falls until shared memory and L2 cannot feed the tensor cores faster.
//
// A precision is a `Core`: its element T and sum S, `tiles` (the table to tune), `rows` x `columns` of out and the
// `depth` that one product covers, `fragment_sets` (2: a step's fragments are read during the step before), Banks* (how
// its tiles are swizzled), and functions that read a warp's fragments of x and w for one step, multiply them and store
// the sums.
#pragma once

#include <utility>

#include "kernels/gemm/ladder/launch.cuh"
#include "kernels/gemm/ladder/vectors.cuh"
#include "kernels/mma.cuh"

namespace kbench::cuda::ladder {

/// A lane's sums of one product.
template <class S>
using Sums = S[4];

/// Stores sums of 16 (down) x 8 products that were computed as their transposes (mma_tf32.cu, mma_fp64.cu): rows g and
/// g + 8 of a product are two neighbouring columns of out.
template <class T, int down, int across>
__device__ void store_transposed(const Operands<T>& p, const Sums<T> (&sums)[down][across], int row, int column,
                                 int lane) {
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int to_row = row + i * 8 + lane % 4 * 2 + e;
            if (to_row >= p.m) continue;
#pragma unroll
            for (int j = 0; j < across; ++j) {
                const int to_column = column + j * 16 + lane / 4 * 2;
                const Vector<T, 2> pair{sums[i][j][e], sums[i][j][2 + e]};
                store_inside(p.out + to_row * p.ld_out + to_column, pair, p.n - to_column, p.vector_out);
            }
        }
}

/// `vectors`: x and w consist of whole 16-byte vectors.
template <class Core, int index, bool transposed, bool vectors>
__global__ __launch_bounds__(Core::tiles[index].threads(),
                             Core::tiles[index].blocks_per_sm) void gemm_mma(Operands<typename Core::T> p) {
    using T = typename Core::T;
    constexpr Tile tile = Core::tiles[index];
    constexpr int down = tile.warp_rows / Core::rows, across = tile.warp_columns / Core::columns;
    constexpr int steps = tile.depth / Core::depth;
    constexpr int x_elements = tile.rows * tile.depth, w_elements = tile.depth * tile.columns;
    static_assert(tile.depth * sizeof(T) == 128, "a row of x fills all banks once");
    constexpr int sets = Core::fragment_sets;
    static_assert(steps % sets == 0, "the first step of each tile uses the first set");
    using R = Ring<tile.stages>;
    using Layout = typename Core::template W<tile, transposed>;
    extern __shared__ __align__(128) unsigned char smem[];
    T* const x_tiles = reinterpret_cast<T*>(smem);
    T* const w_tiles = x_tiles + tile.stages * x_elements;
    const int thread = threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp % (tile.rows / tile.warp_rows) * tile.warp_rows;
    const int column = warp / (tile.rows / tile.warp_rows) * tile.warp_columns;
    const TilePosition position = tile_of_this_block<tile.rows, tile.columns, tile.strip>(p);
    const int first_row = position.row * tile.rows, first_column = position.column * tile.columns;
    const int tiles = (p.k + tile.depth - 1) / tile.depth;

    // w's tile as it lies in memory, and where the tile at depth k starts there.
    constexpr int w_rows = transposed ? tile.columns : tile.depth, w_columns = transposed ? tile.depth : tile.columns;
    const auto source_x = [&](int k) {
        return Source<T>{p.x + first_row * p.ld_x + k, p.ld_x, 1, p.m - first_row, p.k - k, p.vector_x};
    };
    const auto source_w = [&](int k) {
        if constexpr (transposed)
            return Source<T>{p.w + first_column * p.ld_w + k, p.ld_w, 1, p.n - first_column, p.k - k, p.vector_w};
        else
            return Source<T>{p.w + k * p.ld_w + first_column, p.ld_w, 1, p.k - k, p.n - first_column, p.vector_w};
    };
    using CopiesX = VectorCopies<tile.rows, tile.depth, tile.threads(), typename Core::BanksX, T>;
    using CopiesW = VectorCopies<w_rows, w_columns, tile.threads(), typename Layout::Banks, T>;
    CopiesX copies_x(source_x(0), thread);
    CopiesW copies_w(source_w(0), thread);
    int copied = 0, copy_stage = 0;
    // One step's share of copying the tile that is R::ahead of the current one; the last step copies nothing.
    const auto copy_part = [&](int step) {
        T* const x = x_tiles + copy_stage * x_elements;
        T* const w = w_tiles + copy_stage * w_elements;
        if constexpr (vectors) {
            constexpr int all = CopiesX::count + CopiesW::count, part = (all + steps - 2) / (steps - 1);
#pragma unroll
            for (int i = step * part; i < (step + 1) * part && i < all; ++i)
                if (i < CopiesX::count)
                    copies_x.copy(x, i);
                else
                    copies_w.copy(w, i - CopiesX::count);
        } else if (step == 0 && copied < tiles) {
            const int k = copied * tile.depth;
            copy_tile<tile.rows, tile.depth, tile.threads(), typename Core::BanksX>(x, source_x(k), thread);
            copy_tile<w_rows, w_columns, tile.threads(), typename Layout::Banks>(w, source_w(k), thread);
        }
    };
    const auto end_copies = [&] {
        cp_async_commit();  // an empty group, too, keeps the count
        ++copied;
        copy_stage = R::next(copy_stage);
        copies_x.move_right();
        transposed ? copies_w.move_right() : copies_w.move_down();
    };

    Sums<typename Core::S> sums[down][across] = {};
    typename Core::FragmentX x[sets][down];
    typename Core::FragmentW w[sets][across];
    int stage = 0;
    const auto read_fragments = [&](int set, int step) {
        Core::template read_x<tile.depth>(x[set], x_tiles + stage * x_elements, row, step, lane);
        Layout::read(w[set], w_tiles + stage * w_elements, column, step, lane);
    };

#pragma unroll
    for (int i = 0; i < R::ahead; ++i) {
#pragma unroll
        for (int step = 0; step < steps; ++step) copy_part(step);
        end_copies();
    }
    cp_async_wait<R::may_be_pending>();
    __syncthreads();
    read_fragments(0, 0);
    for (int i = 0; i < tiles; ++i) {
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            const auto read_next = [&] {
                if (step + 1 == steps) {
                    end_copies();
                    cp_async_wait<R::may_be_pending>();
                    __syncthreads();  // the next tile has arrived, and all warps have read the last of this one
                    stage = R::next(stage);
                }
                read_fragments((step + 1) % sets, (step + 1) % steps);
            };
            copy_part(step);             // into the stage that all warps were done with at the last barrier
            if (sets == 2) read_next();  // arrives while this step is multiplied
#pragma unroll
            for (int r = 0; r < down; ++r)
#pragma unroll
                for (int c = 0; c < across; ++c) Core::multiply(sums[r][c], x[step % sets][r], w[step % sets][c]);
            if (sets == 1) read_next();
        }
    }
    Core::store(p, sums, first_row + row, first_column + column, lane);
}

/// One kernel row for each tile of Core's table.
template <class Core>
struct MmaRows {
    template <int index>
    static void launch(const GemmProblem& problem, const GemmPointers& pointers, cudaStream_t stream) {
        using T = typename Core::T;
        constexpr Tile tile = Core::tiles[index];
        const Operands<T> p = operands_of<T>(problem, pointers);
        constexpr void (*launches[2][2])(const Tile&, int, int, const GemmProblem&, const GemmPointers&,
                                         cudaStream_t) = {
            {launch_tiles<gemm_mma<Core, index, false, false>, T>, launch_tiles<gemm_mma<Core, index, false, true>, T>},
            {launch_tiles<gemm_mma<Core, index, true, false>, T>, launch_tiles<gemm_mma<Core, index, true, true>, T>}};
        const bool whole = p.k % vector_width<T> == 0 && (problem.weight_transposed || p.n % vector_width<T> == 0);
        const auto launch = launches[problem.weight_transposed][p.vector_x && p.vector_w && whole];
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

}  // namespace kbench::cuda::ladder
