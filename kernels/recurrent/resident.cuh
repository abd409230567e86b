// All steps of a recurrent layer in one kernel of resident blocks, which keep their weights in registers and shared
// memory. Weights of hidden 1024 in fp32 and tf32 just fit into 128 SMs; in fp64, weights of up to hidden 512 do.
//
// Blocks and their work are as in step.cuh, with one block per SM. What remains per step is h, which each block reads
// from L2 (32 KB at batch 8 in fp32, where the weights are 256 KB), and a barrier among one direction's blocks.
#pragma once

#include "kernels/check.h"
#include "kernels/cp_async.cuh"
#include "kernels/recurrent/cells.cuh"
#include "kernels/shared_memory.h"

namespace kbench::cuda::recurrent_layer {

/// Where a block's weights lie: a warp's first chunks in registers, as many as a lane has room for next to its sums,
/// the others in shared memory.
template <class Core, Cell cell, int tiles>
struct Residence {
    static constexpr int slots = 2 * gates_of(cell), in_registers = tiles < 4 ? 2 : 3;
    static constexpr int in_smem = resident_chunks - in_registers;
    static constexpr int chunk_slots = block_threads * slots, h_slots = block_threads * tiles;
    static constexpr int weights_bytes = in_smem * chunk_slots * 16, h_bytes = h_slots * 16;
    /// What is left for chunks of h in flight, at most all.
    static constexpr int room = (resident_smem_bytes - weights_bytes) / h_bytes;
    static constexpr int stages = room < resident_chunks ? room : resident_chunks;
    static_assert(stages >= 2);
    static constexpr int exchange = Exchange<typename Core::S, gates_of(cell), tiles>::bytes;
    static constexpr int bytes = weights_bytes + (stages * h_bytes > exchange ? stages * h_bytes : exchange);
    static_assert(bytes <= resident_smem_bytes);
};

/// Call after a barrier of the block: releases what its threads wrote to other blocks.
__device__ inline void announce(unsigned* counter) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(counter)) : "memory");
}
/// Call before a barrier of the block: afterwards it sees what the announcing blocks wrote.
__device__ inline void wait_until(const unsigned* counter, unsigned count) {
    unsigned seen = 0;
    while (seen < count)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(__cvta_generic_to_global(counter))
                     : "memory");
}

/// grid: both directions' blocks of units, all resident on the device at once. `counters` start as 0. Rows of weights
/// are whole 16-byte chunks; no warp has more than resident_chunks of them.
template <class Core, Cell cell, int tiles>
__global__ void __launch_bounds__(block_threads, 1)
    recurrent_resident(const __grid_constant__ Layer<typename Core::T> layer, unsigned* counters) {
    using T = typename Core::T;
    using S = typename Core::S;
    using Place = Residence<Core, cell, tiles>;
    constexpr int gates = gates_of(cell), width = vector_width<T>, chunk = 4 * width;
    extern __shared__ __align__(16) unsigned char smem[];
    uint4* const weights_smem = reinterpret_cast<uint4*>(smem);
    uint4* const h_smem = weights_smem + Place::in_smem * Place::chunk_slots;

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, hidden = layer.hidden;
    const int blocks = gridDim.x / 2;
    const bool reverse = blockIdx.x >= blocks;
    const DirectionOf<T>& own = layer.directions[reverse];
    const int first_unit = (blockIdx.x - (reverse ? blocks : 0)) * block_units;
    unsigned* const counter = counters + (reverse ? counter_distance : 0);

    const int chunks = (hidden + chunk - 1) / chunk, own_chunks = (chunks - warp + block_warps - 1) / block_warps;
    const auto first_k = [&](int i) { return (warp + block_warps * i) * chunk + lane % 4 * width; };
    const auto stored = [&](int i, int gate, int half) {
        const int unit = first_unit + 8 * half + lane / 4, k = first_k(i);
        if (unit >= hidden || k >= hidden) return uint4{0, 0, 0, 0};
        return Core::prepare(
            *reinterpret_cast<const uint4*>(own.weight_hh + (std::int64_t{gate} * hidden + unit) * hidden + k));
    };
    const auto slot = [&](int i, int gate, int half) {
        return weights_smem + (i - Place::in_registers) * Place::chunk_slots + (2 * gate + half) * block_threads +
               thread;
    };
    uint4 held[Place::in_registers][gates][2] = {};
#pragma unroll
    for (int gate = 0; gate < gates; ++gate)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int i = 0; i < Place::in_registers; ++i)
                if (i < own_chunks) held[i][gate][half] = stored(i, gate, half);
            for (int i = Place::in_registers; i < own_chunks; ++i)
                *slot(i, gate, half) = stored(i, gate, half);  // read by this thread alone
        }

    const auto copy_h = [&](const T* before, int i) {
        const int k = first_k(i), stage = i % Place::stages;
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
            const int n = tile * tile_sequences + lane / 4;
            const bool inside = n < layer.batch && k < hidden;
            const T* const from = before + (inside ? std::int64_t{n} * layer.h_stride + k : std::int64_t{0});
            cp_async_if<16>(h_smem + stage * Place::h_slots + tile * block_threads + thread, from, inside);
        }
    };
    Cells<Core, cell, tiles> cells(layer, own, first_unit, 0);
    cells.read(layer, own, reverse, 0);

    for (int step = 0; step < layer.steps; ++step) {
        typename Core::template Products<gates, tiles> products;
        if (step > 0) {
            if (thread == 0) wait_until(counter, static_cast<unsigned>(step) * blocks);
            __syncthreads();
            const T* const before = own.h[step % 2];
#pragma unroll
            for (int i = 0; i < Place::stages; ++i) {
                if (i < own_chunks) copy_h(before, i);
                cp_async_commit();
            }
            const auto add = [&](int i, const uint4(&weights)[gates][2]) {
                cp_async_wait<Place::stages - 1>();
                __syncwarp();  // lanes may take h of others; no read of a slot may move up here
                const uint4* const h = h_smem + i % Place::stages * Place::h_slots + thread - lane;
                products.add(
                    weights, [&](int tile, int of_lane) { return h[tile * block_threads + of_lane]; }, lane);
                __syncwarp();  // nor down below the copies
                if (i + Place::stages < own_chunks) copy_h(before, i + Place::stages);
                cp_async_commit();
            };
#pragma unroll
            for (int i = 0; i < Place::in_registers; ++i)
                if (i < own_chunks) add(i, held[i]);
            for (int i = Place::in_registers; i < own_chunks; ++i) {
                uint4 weights[gates][2];
#pragma unroll
                for (int gate = 0; gate < gates; ++gate)
#pragma unroll
                    for (int half = 0; half < 2; ++half) weights[gate][half] = *slot(i, gate, half);
                add(i, weights);
            }
            products.finish(lane);
            cp_async_wait_all();
            __syncthreads();  // sums replace h
        }
        T* const after = own.h[(step + 1) % 2];
        T next[cells.passes] = {};
#pragma unroll
        for (int pass = 0; pass < cells.passes; ++pass) {
            S of_gates[gates] = {};
            if (step > 0) {
                if (pass > 0) __syncthreads();  // the pass before has read its sums
                Exchange<S, gates, tiles>::add_up(products, pass, reinterpret_cast<S*>(h_smem), of_gates);
            }
            if (!cells.has_cell(pass)) continue;
            next[pass] = cells.advance(pass, of_gates);
            after[std::int64_t{cells.sequence[pass]} * layer.h_stride + cells.unit] = next[pass];
        }
        __syncthreads();
        // Work that no one waits for, done while the other blocks arrive.
        if (thread == 0) announce(counter);
#pragma unroll
        for (int pass = 0; pass < cells.passes; ++pass)
            if (cells.has_cell(pass)) {
                own.out[std::int64_t{cells.row[pass]} * hidden + cells.unit] = next[pass];
                cells.save(layer, own, pass);
            }
        if (step + 1 < layer.steps) cells.read(layer, own, reverse, step + 1);
    }
}

template <class Core, Cell cell, int tiles>
void launch_resident(const Layer<typename Core::T>& layer, unsigned* counters, cudaStream_t stream) {
    constexpr auto kernel = recurrent_resident<Core, cell, tiles>;
    constexpr int bytes = Residence<Core, cell, tiles>::bytes;
    allow_shared_memory(kernel, bytes);
    KBENCH_CUDA(cudaMemsetAsync(counters, 0, counters_bytes, stream));
    Layer<typename Core::T> of_kernel = layer;
    void* arguments[] = {&of_kernel, &counters};
    launch_resident_blocks(reinterpret_cast<const void*>(kernel), layer.hidden, arguments, bytes, stream);
}

/// A precision's kernels, for up to 8 sequences in each of `most_tiles`. Each precision is compiled in its own file.
template <class Core, int most_tiles>
void launch_resident_layer(const RecurrentProblem& problem, const RecurrentDirection& forward,
                           const RecurrentDirection& reverse, const std::int32_t* lengths, void* workspace,
                           cudaStream_t stream) {
    const auto layer = layer_of<typename Core::T>(problem, forward, reverse, lengths, workspace);
    auto* const counters = reinterpret_cast<unsigned*>(static_cast<char*>(workspace) + state_bytes(problem));
    const auto launch = [&]<Cell cell>() {
        if constexpr (most_tiles >= 4) {
            if (layer.batch > 2 * tile_sequences) return launch_resident<Core, cell, 4>(layer, counters, stream);
        }
        if constexpr (most_tiles >= 2) {
            if (layer.batch > tile_sequences) return launch_resident<Core, cell, 2>(layer, counters, stream);
        }
        launch_resident<Core, cell, 1>(layer, counters, stream);
    };
    switch (problem.cell) {
        case Cell::lstm: return launch.template operator()<Cell::lstm>();
        case Cell::gru: return launch.template operator()<Cell::gru>();
        case Cell::rnn: return launch.template operator()<Cell::rnn>();
    }
}

}  // namespace kbench::cuda::recurrent_layer
