// Rung 4, asynchronous copies: cp.async fills a ring of tiles in shared memory while earlier tiles are multiplied.
//
// Compared with rung 3: copies need no registers and no thread waits for them, so the tile may be wider (8 x 16 sums
// per thread, 8 x 8 in fp64). Stalls on global loads (long_scoreboard) and most stalls at barriers should go. A warp's
// lanes form 4 x 8 threads, so that it reads 32 + 128 distinct values for 4096 products. x stays as it lies: a thread
// reads 16 bytes along k of each of its rows. The next step's values are read before this step's are
// multiplied. In fp32, where rung 3 already hid its waiting, the gain is 7 % fewer instructions; occupancy is lower.
#include <utility>

#include "kernels/gemm/ladder/launch.cuh"
#include "kernels/gemm/ladder/vectors.cuh"

namespace kbench::cuda::ladder {
namespace {

/// Bytes of a row in a tile of x: each of the 8 groups of banks once.
constexpr int row_bytes = 128;

/// The tiles of each type, largest first. With 8 rows and 16 columns a thread reads 6 vectors per k for 128 products
/// (fp32); with 8 x 8 it would read 4 for 64.
template <class T>
struct Tiles {
    static constexpr int depth = row_bytes / static_cast<int>(sizeof(T));
    static constexpr bool is_fp32 = sizeof(T) == 4;
    static constexpr Tile tiles[] = {
        // rows, columns, depth, rows and columns of a warp, stages, strip, blocks per SM, speed
        {128, 256, depth, 32, 128, 3, 16, 1, is_fp32 ? 98 : 100},
        {128, 128, depth, 32, 128, 3, 16, 2, is_fp32 ? 100 : 98},
        {64, 128, depth, 32, 64, 3, 16, 2, is_fp32 ? 91 : 94},
    };
};
template <>
struct Tiles<double> {
    static constexpr int depth = row_bytes / 8;
    static constexpr Tile tiles[] = {
        // rows, columns, depth, rows and columns of a warp, stages, strip, blocks per SM, speed
        {128, 128, depth, 32, 64, 3, 16, 1, 95},
        {64, 64, depth, 32, 64, 3, 16, 3, 100},
    };
};

/// One access reads a chunk of 4 neighbouring rows of x's tile [rows][depth]; w's [depth][columns] is read along rows.
using BanksX = Swizzle<8>;
struct BanksW {
    static constexpr unsigned chunk(unsigned, unsigned chunk) { return chunk; }
};

constexpr int lane_rows = 4, lane_columns = 8;

template <class T, int index>
__global__ __launch_bounds__(Tiles<T>::tiles[index].threads(),
                             Tiles<T>::tiles[index].blocks_per_sm) void gemm_async(Operands<T> p) {
    constexpr Tile tile = Tiles<T>::tiles[index];
    constexpr int width = vector_width<T>, rows = tile.warp_rows / lane_rows,
                  columns = tile.warp_columns / lane_columns;
    constexpr int steps = tile.depth / width;
    constexpr int x_elements = tile.rows * tile.depth, w_elements = tile.depth * tile.columns;
    using R = Ring<tile.stages>;
    using Sum = Arithmetic<T>;
    using Chunk = Vector<T, width>;
    extern __shared__ __align__(128) unsigned char smem[];
    T* const x_tiles = reinterpret_cast<T*>(smem);
    T* const w_tiles = x_tiles + tile.stages * x_elements;
    const int thread = threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const TilePosition position = tile_of_this_block<tile.rows, tile.columns, tile.strip>(p);
    const int first_row = position.row * tile.rows, first_column = position.column * tile.columns;
    const int tiles = (p.k + tile.depth - 1) / tile.depth;
    // Neighbouring lanes have neighbouring rows and neighbouring vectors of columns.
    const int row = warp % (tile.rows / tile.warp_rows) * tile.warp_rows + lane / lane_columns;
    const int column = warp / (tile.rows / tile.warp_rows) * tile.warp_columns + lane % lane_columns * width;

    int copied = 0, copy_stage = 0;
    const auto copy_next = [&] {
        if (copied < tiles) {
            const int k = copied * tile.depth;
            copy_tile<tile.rows, tile.depth, tile.threads(), BanksX>(
                x_tiles + copy_stage * x_elements,
                Source<T>{p.x + first_row * p.ld_x + k, p.ld_x, 1, p.m - first_row, p.k - k, p.vector_x}, thread);
            copy_tile<tile.depth, tile.columns, tile.threads(), BanksW>(
                w_tiles + copy_stage * w_elements,
                Source<T>{p.w + k * p.w_row() + first_column * p.w_column(), p.w_row(), p.w_column(), p.k - k,
                          p.n - first_column, p.vector_w && !p.w_transposed},
                thread);
        }
        cp_async_commit();  // an empty group keeps the count
        ++copied;
        copy_stage = R::next(copy_stage);
    };

    Sum sums[rows][columns] = {};
    Chunk x[2][rows], w[2][columns / width];
    int stage = 0;
    const auto read_x = [&](Chunk(&chunks)[rows], int step) {
        const T* const x_tile = x_tiles + stage * x_elements;
#pragma unroll
        for (int r = 0; r < rows; ++r)
            chunks[r] = Chunk::load(x_tile + swizzled<BanksX, tile.depth, width>(row + r * lane_rows, step * width));
    };
    const auto read_w = [&](Chunk(&chunks)[columns / width], int k) {
        const T* const w_tile = w_tiles + stage * w_elements + k * tile.columns + column;
#pragma unroll
        for (int c = 0; c < columns / width; ++c) chunks[c] = Chunk::load(w_tile + c * lane_columns * width);
    };

#pragma unroll
    for (int i = 0; i < R::ahead; ++i) copy_next();
    cp_async_wait<R::may_be_pending>();
    __syncthreads();
    read_x(x[0], 0);
    read_w(w[0], 0);
    for (int i = 0; i < tiles; ++i) {
        copy_next();  // into the stage that all warps were done with at the last barrier
#pragma unroll 2
        for (int step = 0; step < steps; ++step) {
#pragma unroll
            for (int e = 0; e < width; ++e) {
                if (e + 1 < width) {
                    read_w(w[(e + 1) % 2], step * width + e + 1);
                } else {
                    int next = step + 1;
                    if (next == steps) {  // the first step of the next tile
                        cp_async_wait<R::may_be_pending>();
                        __syncthreads();
                        stage = R::next(stage);
                        next = 0;
                    }
                    read_x(x[(step + 1) % 2], next);
                    read_w(w[0], next * width);
                }
#pragma unroll
                for (int r = 0; r < rows; ++r) {
                    const Sum a = static_cast<Sum>(x[step % 2][r].elements[e]);
#pragma unroll
                    for (int c = 0; c < columns; ++c)
                        sums[r][c] += a * static_cast<Sum>(w[e % 2][c / width].elements[c % width]);
                }
            }
        }
    }

#pragma unroll
    for (int r = 0; r < rows; ++r) {
        const int out_row = first_row + row + r * lane_rows;
        if (out_row >= p.m) continue;
#pragma unroll
        for (int c = 0; c < columns; c += width) {
            const int out_column = first_column + column + c * lane_columns;
            Chunk chunk;
#pragma unroll
            for (int e = 0; e < width; ++e) chunk.elements[e] = static_cast<T>(sums[r][c + e]);
            store_inside(p.out + out_row * p.ld_out + out_column, chunk, p.n - out_column, p.vector_out);
        }
    }
}

template <class T>
struct Rows {
    template <int index>
    static void launch(const GemmProblem& problem, const GemmPointers& pointers, cudaStream_t stream) {
        constexpr Tile tile = Tiles<T>::tiles[index];
        launch_tiles<gemm_async<T, index>, T>(tile, tile.threads(), tile.smem_bytes(sizeof(T)), problem, pointers,
                                              stream);
    }
    template <std::size_t... i>
    static Kernels kernels(std::index_sequence<i...>) {
        static constexpr Kernel rows[] = {
            {"gemm_async", Tiles<T>::tiles[i], Tiles<T>::tiles[i].smem_bytes(sizeof(T)), launch<i>}...};
        return rows;
    }
    static Kernels kernels() { return kernels(std::make_index_sequence<std::size(Tiles<T>::tiles)>()); }
};

}  // namespace

Kernels async_kernels(Precision precision) { return plain_core_kernels<Rows>(precision); }

}  // namespace kbench::cuda::ladder
