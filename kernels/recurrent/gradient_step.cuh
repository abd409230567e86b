// One step of a recurrent layer's backward in one kernel, for both directions at once: the product of the later step's
// db with weight_hh, and the backward of the cell.
//
// A block has 16 units of a direction and up to 8 sequences per tile. k of its product runs over all gates of all
// units, and its warps share it as in step.cuh. The ring of copies is as there, too: weights are transposed once per
// run, so that both operands lie along k. A block reads all of db: as much as its weights at 16 sequences.
#pragma once

#include "kernels/check.h"
#include "kernels/cp_async.cuh"
#include "kernels/programmatic.cuh"
#include "kernels/recurrent/gradient_layer.cuh"
#include "kernels/shared_memory.h"

namespace kbench::cuda::recurrent_layer {

inline constexpr int transposed_tile = 32, transposing_rows = 8;

/// to [columns, stride] = from [rows, columns] transposed, with zeros after its rows. grid: tiles of `stride` by
/// `columns`, by direction.
template <class T>
__global__ void __launch_bounds__(transposed_tile* transposing_rows)
    transpose_weights(const __grid_constant__ GradientLayer<T> layer, int rows) {
    __shared__ T tile[transposed_tile][transposed_tile + 1];
    const GradientDirectionOf<T>& own = layer.directions[blockIdx.z];
    const int columns = layer.hidden, stride = layer.db_stride;
    const int first_row = blockIdx.x * transposed_tile, first_column = blockIdx.y * transposed_tile;
    for (int i = threadIdx.y; i < transposed_tile; i += transposing_rows) {
        const int row = first_row + i, column = first_column + static_cast<int>(threadIdx.x);
        tile[i][threadIdx.x] =
            row < rows && column < columns ? own.weight_hh[std::int64_t{row} * columns + column] : static_cast<T>(0.0f);
    }
    __syncthreads();
    for (int i = threadIdx.y; i < transposed_tile; i += transposing_rows) {
        const int row = first_row + static_cast<int>(threadIdx.x), column = first_column + i;
        if (row < stride && column < columns) own.weight[std::int64_t{column} * stride + row] = tile[threadIdx.x][i];
    }
}

template <class T>
void transpose_both(const GradientLayer<T>& layer, int gates, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(divide_up(layer.db_stride, transposed_tile)),
                    static_cast<unsigned>(divide_up(layer.hidden, transposed_tile)), 2);
    transpose_weights<T><<<grid, dim3(transposed_tile, transposing_rows), 0, stream>>>(layer, gates * layer.hidden);
    KBENCH_CUDA_LAUNCHED("transpose_weights");
}

/// Slots of a chunk (of the weights and of db), and how many chunks fit next to another block (step.cuh: Ring).
template <class S, int tiles>
struct GradientRing {
    static constexpr int slots = 2 + tiles, stage_bytes = slots * block_threads * 16;
    static constexpr int room = 113 * 1024 / stage_bytes, stages = room < 8 ? room : 8;
    static constexpr int ring = stages * stage_bytes, exchange = Exchange<S, 1, tiles>::bytes;
    static constexpr int bytes = ring > exchange ? ring : exchange;
};

/// grid: both directions' blocks of units, by tiles of sequences.
template <class Core, Cell cell, int tiles>
__global__ void __launch_bounds__(block_threads, 2)
    recurrent_gradient_step(const __grid_constant__ GradientLayer<typename Core::T> layer, int step) {
    using T = typename Core::T;
    using S = typename Core::S;
    constexpr int gates = gates_of(cell), width = vector_width<T>, chunk = 4 * width;
    using Slots = GradientRing<S, tiles>;
    extern __shared__ __align__(16) unsigned char smem[];
    const auto slot = [](int stage, int index, int thread) {
        return reinterpret_cast<uint4*>(smem) + (stage * Slots::slots + index) * block_threads + thread;
    };

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, hidden = layer.hidden;
    const int depth = gates * hidden, blocks = gridDim.x / 2;
    const bool reverse = blockIdx.x >= blocks;
    const GradientDirectionOf<T>& own = layer.directions[reverse];
    const int first_unit = (blockIdx.x - (reverse ? blocks : 0)) * block_units;
    const int first_sequence = blockIdx.y * tiles * tile_sequences;

    // As in step.cuh: chunks warp, warp + 8, ...; every second step in reverse order.
    const int chunks = (depth + chunk - 1) / chunk, own_chunks = (chunks - warp + block_warps - 1) / block_warps;
    const auto first_k = [&](int i) {
        return (warp + block_warps * (step % 2 ? own_chunks - 1 - i : i)) * chunk + lane % 4 * width;
    };
    const auto copy_weights = [&](int i) {
        const int k = first_k(i), stage = i % Slots::stages;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int unit = first_unit + 8 * half + lane / 4;
            const bool inside = unit < hidden && k < depth;
            cp_async_if<16>(slot(stage, half, thread),
                            own.weight + (inside ? std::int64_t{unit} * layer.db_stride + k : std::int64_t{0}), inside);
        }
    };
    const T* const behind = own.db[step % 2];
    const auto copy_db = [&](int i) {
        const int k = first_k(i), stage = i % Slots::stages;
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
            const int n = first_sequence + tile * tile_sequences + lane / 4;
            const int elements = n < layer.batch ? min(max(depth - k, 0), width) : 0;
            const T* const from = behind + (elements > 0 ? std::int64_t{n} * layer.db_stride + k : std::int64_t{0});
            cp_async_16(slot(stage, 2 + tile, thread), from, elements * static_cast<int>(sizeof(T)));
        }
    };

    let_next_launch();
    if (step > 0) {
#pragma unroll
        for (int i = 0; i < Slots::stages; ++i) {
            if (i < own_chunks) copy_weights(i);
            cp_async_commit();
        }
    }
    GradientCells<T, cell, tiles> cells(layer, first_unit, first_sequence);
    cells.read(layer, own, reverse, step);
    wait_for_previous();
    typename Core::template Products<1, tiles> products;
    // Bypasses L1, where another block of this SM may have left an old copy.
#pragma unroll
    for (int pass = 0; pass < cells.passes; ++pass)
        if (cell != Cell::rnn && step > 0 && cells.runs[pass])
            cells.carry[pass] = __ldcg(own.carry + std::int64_t{cells.sequence[pass]} * hidden + cells.unit);
    if (step > 0) {
#pragma unroll
        for (int i = 0; i < Slots::stages; ++i) {
            if (i < own_chunks) copy_db(i);
            cp_async_commit();
        }
        for (int i = 0; i < own_chunks; ++i) {
            cp_async_wait<Slots::stages - 1>();
            __syncwarp();  // lanes may take db of others; no read of a slot may move up here
            const int stage = i % Slots::stages;
            uint4 weights[1][2];
#pragma unroll
            for (int half = 0; half < 2; ++half) weights[0][half] = Core::prepare(*slot(stage, half, thread));
            products.add(
                weights, [&](int tile, int of_lane) { return *slot(stage, 2 + tile, thread - lane + of_lane); }, lane);
            __syncwarp();  // nor down below the copies
            if (i + Slots::stages < own_chunks) {
                copy_weights(i + Slots::stages);
                copy_db(i + Slots::stages);
            }
            cp_async_commit();
        }
        products.finish(lane);
        cp_async_wait_all();
        __syncthreads();  // sums replace the ring
    }

    T* const next = own.db[(step + 1) % 2];
#pragma unroll
    for (int pass = 0; pass < cells.passes; ++pass) {
        S product[1] = {};
        if (step > 0) {
            if (pass > 0) __syncthreads();  // the pass before has read its sums
            Exchange<S, 1, tiles>::add_up(products, pass, reinterpret_cast<S*>(smem), product);
        }
        if (!cells.has_cell(pass)) continue;
        T da[gates], db[gates];
        cells.advance(pass, product[0], da, db);
        const std::int64_t n = cells.sequence[pass];
        if (cell != Cell::rnn) own.carry[n * hidden + cells.unit] = cells.carry[pass];
#pragma unroll
        for (int gate = 0; gate < gates; ++gate)
            next[n * layer.db_stride + std::int64_t{gate} * hidden + cells.unit] = db[gate];
        cells.store(layer, own, pass, da);
    }
}

/// Runs all steps of a layer. Where this GPU has too little shared memory: one tile at a time, with a smaller ring.
template <class Core, Cell cell, int tiles>
void launch_gradient_steps(const GradientLayer<typename Core::T>& layer, cudaStream_t stream) {
    constexpr int bytes = GradientRing<typename Core::S, tiles>::bytes;
    if constexpr (bytes > least_shared_bytes) {
        static_assert(GradientRing<typename Core::S, 1>::bytes <= least_shared_bytes);
        if (bytes > shared_bytes_of_block()) return launch_gradient_steps<Core, cell, 1>(layer, stream);
    }
    constexpr auto kernel = recurrent_gradient_step<Core, cell, tiles>;
    allow_shared_memory(kernel, bytes);
    const dim3 grid(static_cast<unsigned>(2 * divide_up(layer.hidden, block_units)),
                    static_cast<unsigned>(divide_up(layer.batch, tiles * tile_sequences)));
    // The first launch waits for everything before it, so that the others may read weights and gates early.
    kernel<<<grid, block_threads, bytes, stream>>>(layer, 0);
    KBENCH_CUDA_LAUNCHED("recurrent_gradient_step");
    for (int step = 1; step < layer.steps; ++step)
        launch_behind(kernel, grid, dim3(block_threads), {.smem_bytes = bytes}, stream, layer, step);
}

}  // namespace kbench::cuda::recurrent_layer
