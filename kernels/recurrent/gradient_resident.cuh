// All steps of a recurrent layer's backward in one kernel of resident blocks, which keep their transposed weights in
// registers and shared memory; those of an LSTM of hidden 1024 in fp32 and tf32 just fit into 128 SMs. Blocks and their
// work are as in gradient_step.cuh, the barrier among one direction's blocks as in resident.cuh. Per step, a block only
// reads db from L2: 128 KB for an LSTM of hidden 1024 at batch 8 in fp32.
#pragma once

#include "kernels/recurrent/gradient_step.cuh"
#include "kernels/recurrent/resident.cuh"
#include "kernels/shared_memory.h"

namespace kbench::cuda::recurrent_layer {

/// Where a block's weights lie: a warp's first chunks in registers, the others in shared memory.
template <class S, int tiles>
struct GradientResidence {
    static constexpr int in_registers = 12, in_smem = gradient_resident_chunks - in_registers;
    static constexpr int chunk_slots = block_threads * 2, db_slots = block_threads * tiles;
    static constexpr int weights_bytes = in_smem * chunk_slots * 16, db_bytes = db_slots * 16;
    /// What is left for chunks of db in flight.
    static constexpr int room = (resident_smem_bytes - weights_bytes) / db_bytes, stages = room < 16 ? room : 16;
    static_assert(stages >= 2);
    static constexpr int exchange = Exchange<S, 1, tiles>::bytes;
    static constexpr int bytes = weights_bytes + (stages * db_bytes > exchange ? stages * db_bytes : exchange);
    static_assert(bytes <= resident_smem_bytes);
};

/// grid: both directions' blocks of units, all resident on the device at once. `counters` start as 0. No warp has more
/// than gradient_resident_chunks chunks.
template <class Core, Cell cell, int tiles>
__global__ void __launch_bounds__(block_threads, 1)
    recurrent_gradient_resident(const __grid_constant__ GradientLayer<typename Core::T> layer, unsigned* counters) {
    using T = typename Core::T;
    using S = typename Core::S;
    using Place = GradientResidence<S, tiles>;
    constexpr int gates = gates_of(cell), width = vector_width<T>, chunk = 4 * width;
    extern __shared__ __align__(16) unsigned char smem[];
    uint4* const weights_smem = reinterpret_cast<uint4*>(smem);
    uint4* const db_smem = weights_smem + Place::in_smem * Place::chunk_slots;

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, hidden = layer.hidden;
    const int depth = gates * hidden, blocks = gridDim.x / 2;
    const bool reverse = blockIdx.x >= blocks;
    const GradientDirectionOf<T>& own = layer.directions[reverse];
    const int first_unit = (blockIdx.x - (reverse ? blocks : 0)) * block_units;
    unsigned* const counter = counters + (reverse ? counter_distance : 0);

    const int chunks = (depth + chunk - 1) / chunk, own_chunks = (chunks - warp + block_warps - 1) / block_warps;
    const auto first_k = [&](int i) { return (warp + block_warps * i) * chunk + lane % 4 * width; };
    const auto stored = [&](int i, int half) {
        const int unit = first_unit + 8 * half + lane / 4, k = first_k(i);
        if (unit >= hidden || k >= depth) return uint4{0, 0, 0, 0};
        return Core::prepare(*reinterpret_cast<const uint4*>(own.weight + std::int64_t{unit} * layer.db_stride + k));
    };
    const auto slot = [&](int i, int half) {
        return weights_smem + (i - Place::in_registers) * Place::chunk_slots + half * block_threads + thread;
    };
    uint4 held[Place::in_registers][1][2] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < Place::in_registers; ++i)
            if (i < own_chunks) held[i][0][half] = stored(i, half);
        for (int i = Place::in_registers; i < own_chunks; ++i) *slot(i, half) = stored(i, half);  // for this thread
    }

    const auto copy_db = [&](const T* behind, int i) {
        const int k = first_k(i), stage = i % Place::stages;
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
            const int n = tile * tile_sequences + lane / 4;
            const int elements = n < layer.batch ? min(max(depth - k, 0), width) : 0;
            const T* const from = behind + (elements > 0 ? std::int64_t{n} * layer.db_stride + k : std::int64_t{0});
            cp_async_16(db_smem + stage * Place::db_slots + tile * block_threads + thread, from,
                        elements * static_cast<int>(sizeof(T)));
        }
    };
    GradientCells<T, cell, tiles> cells(layer, first_unit, 0);
    cells.read(layer, own, reverse, 0);

    for (int step = 0; step < layer.steps; ++step) {
        typename Core::template Products<1, tiles> products;
        if (step > 0) {
            if (thread == 0) wait_until(counter, static_cast<unsigned>(step) * blocks);
            __syncthreads();
            const T* const behind = own.db[step % 2];
#pragma unroll
            for (int i = 0; i < Place::stages; ++i) {
                if (i < own_chunks) copy_db(behind, i);
                cp_async_commit();
            }
            const auto add = [&](int i, const uint4(&weights)[1][2]) {
                cp_async_wait<Place::stages - 1>();
                __syncwarp();  // lanes may take db of others; no read of a slot may move up here
                const uint4* const db = db_smem + i % Place::stages * Place::db_slots + thread - lane;
                products.add(
                    weights, [&](int tile, int of_lane) { return db[tile * block_threads + of_lane]; }, lane);
                __syncwarp();  // nor down below the copies
                if (i + Place::stages < own_chunks) copy_db(behind, i + Place::stages);
                cp_async_commit();
            };
#pragma unroll
            for (int i = 0; i < Place::in_registers; ++i)
                if (i < own_chunks) add(i, held[i]);
            for (int i = Place::in_registers; i < own_chunks; ++i) {
                uint4 weights[1][2];
#pragma unroll
                for (int half = 0; half < 2; ++half) weights[0][half] = *slot(i, half);
                add(i, weights);
            }
            products.finish(lane);
            cp_async_wait_all();
            __syncthreads();  // sums replace db
        }
        T* const next = own.db[(step + 1) % 2];
        T da[cells.passes][gates];
#pragma unroll
        for (int pass = 0; pass < cells.passes; ++pass) {
            S product[1] = {};
            if (step > 0) {
                if (pass > 0) __syncthreads();  // the pass before has read its sums
                Exchange<S, 1, tiles>::add_up(products, pass, reinterpret_cast<S*>(db_smem), product);
            }
            if (!cells.has_cell(pass)) continue;
            T db[gates];
            cells.advance(pass, product[0], da[pass], db);
#pragma unroll
            for (int gate = 0; gate < gates; ++gate)
                next[std::int64_t{cells.sequence[pass]} * layer.db_stride + std::int64_t{gate} * hidden + cells.unit] =
                    db[gate];
        }
        __syncthreads();
        // Work that no one waits for, done while the other blocks arrive.
        if (thread == 0) announce(counter);
#pragma unroll
        for (int pass = 0; pass < cells.passes; ++pass)
            if (cells.has_cell(pass)) cells.store(layer, own, pass, da[pass]);
        if (step + 1 < layer.steps) cells.read(layer, own, reverse, step + 1);
    }
}

template <class Core, Cell cell, int tiles>
void launch_gradient_resident(const GradientLayer<typename Core::T>& layer, unsigned* counters, cudaStream_t stream) {
    constexpr auto kernel = recurrent_gradient_resident<Core, cell, tiles>;
    constexpr int bytes = GradientResidence<typename Core::S, tiles>::bytes;
    allow_shared_memory(kernel, bytes);
    KBENCH_CUDA(cudaMemsetAsync(counters, 0, counters_bytes, stream));
    GradientLayer<typename Core::T> of_kernel = layer;
    void* arguments[] = {&of_kernel, &counters};
    launch_resident_blocks(reinterpret_cast<const void*>(kernel), layer.hidden, arguments, bytes, stream);
}

/// A precision's kernels, per step and resident. Each precision is compiled in a file of its own.
template <class Core>
void launch_gradient(const RecurrentProblem& problem, const RecurrentGradientDirection& forward,
                     const RecurrentGradientDirection& reverse, const std::int32_t* lengths, void* workspace,
                     cudaStream_t stream) {
    const auto layer = gradient_layer_of<typename Core::T>(problem, forward, reverse, lengths, workspace);
    auto* const counters = reinterpret_cast<unsigned*>(static_cast<char*>(workspace) + gradient_state_bytes(problem));
    transpose_both(layer, static_cast<int>(gates_of(problem.cell)), stream);
    const auto launch = [&]<Cell cell, int tiles>() {
        if (problem.kernels == RecurrentKernels::resident)
            launch_gradient_resident<Core, cell, tiles>(layer, counters, stream);
        else
            launch_gradient_steps<Core, cell, tiles>(layer, stream);
    };
    const auto launch_cell = [&]<Cell cell>() {
        if constexpr (Core::most_tiles >= 4) {
            if (layer.batch > 2 * tile_sequences) return launch.template operator()<cell, 4>();
        }
        if constexpr (Core::most_tiles >= 2) {
            if (layer.batch > tile_sequences) return launch.template operator()<cell, 2>();
        }
        launch.template operator()<cell, 1>();
    };
    switch (problem.cell) {
        case Cell::lstm: return launch_cell.template operator()<Cell::lstm>();
        case Cell::gru: return launch_cell.template operator()<Cell::gru>();
        case Cell::rnn: return launch_cell.template operator()<Cell::rnn>();
    }
}

}  // namespace kbench::cuda::recurrent_layer
