// A step of a recurrent layer in one kernel, for both directions at once: the product of weight_hh with h of the step
// before, and the cell, so that no gate's value goes to memory.
//
// A block has 16 units of a direction with all their gates, and up to 8 sequences for each tile. Its warps share k
// among them by chunks of 64 bytes; what they add up meets in shared memory at the end. So a weight is read once a step
// for all sequences of the block, and the step is bound by L2 as long as there are few of them: 16 MB for both
// directions of an LSTM with hidden 1024 in fp16 are 3 us, 32 MB in fp32 6 us.
//
// A lane copies what it needs itself into slots of shared memory of its own, a ring of some chunks. A kernel fills its
// ring with weights before it waits for the step before (programmatic launch), which takes the launch and the first
// access to memory out of the chain of steps. So two blocks must fit into an SM.
#pragma once

#include "kernels/cp_async.cuh"
#include "kernels/programmatic.cuh"
#include "kernels/recurrent/cell.cuh"
#include "kernels/recurrent/layer.cuh"

namespace kbench::cuda::recurrent_layer {

inline constexpr int step_warps = 8, step_threads = 32 * step_warps;
/// Of sm_90's 228 KiB, which two blocks share with 1 KiB each for the system.
inline constexpr int ring_bytes = 113 * 1024;

/// Slots of a chunk, and how many chunks fit.
template <int gates, int tiles>
struct Ring {
    static constexpr int slots = 2 * gates + tiles;
    static constexpr int stage_bytes = slots * step_threads * 16;
    static constexpr int stages = ring_bytes / stage_bytes < 8 ? ring_bytes / stage_bytes : 8;
    static constexpr int bytes = stages * stage_bytes;
};

/// Sums of all warps, for up to two tiles at a time. 33 places apart, since a warp reads 8 lanes of 4 sums at a time.
template <class S, int gates, int tiles>
struct Exchange {
    static constexpr int tiles_at_once = tiles < 2 ? tiles : 2;
    static constexpr int lanes = 33, of_warp = tiles_at_once * gates * 4 * lanes;
    static constexpr int bytes = step_warps * of_warp * static_cast<int>(sizeof(S));
};

template <class S, int gates, int tiles>
constexpr int step_smem_bytes() {
    constexpr int ring = Ring<gates, tiles>::bytes, exchange = Exchange<S, gates, tiles>::bytes;
    return ring > exchange ? ring : exchange;
}

/// grid: both directions' blocks of units, by tiles of sequences. `vectors`: rows of weights are whole pieces of 16
/// bytes.
template <class Core, Cell cell, int tiles, bool vectors>
__global__ void __launch_bounds__(step_threads, 2)
    recurrent_step(const __grid_constant__ Layer<typename Core::T> layer, int step) {
    using T = typename Core::T;
    using S = typename Core::S;
    constexpr int gates = gates_of(cell), width = vector_width<T>, chunk = 4 * width;
    using Slots = Ring<gates, tiles>;
    using Meeting = Exchange<S, gates, tiles>;
    extern __shared__ __align__(16) unsigned char smem[];
    const auto slot = [](int stage, int index, int thread) {
        return reinterpret_cast<uint4*>(smem) + (stage * Slots::slots + index) * step_threads + thread;
    };

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, hidden = layer.hidden;
    const int blocks = gridDim.x / 2;
    const bool reverse = blockIdx.x >= blocks;
    const DirectionOf<T>& own = layer.directions[reverse];
    const int first_unit = (blockIdx.x - (reverse ? blocks : 0)) * block_units;
    const int first_sequence = blockIdx.y * tiles * tile_sequences;

    // Chunks warp, warp + 8, ...; every second step from the last one on, which may still be in L2 where the weights
    // are larger than it is.
    const int chunks = (hidden + chunk - 1) / chunk, own_chunks = (chunks - warp + step_warps - 1) / step_warps;
    const auto first_k = [&](int i) {
        return (warp + step_warps * (step % 2 ? own_chunks - 1 - i : i)) * chunk + lane % 4 * width;
    };
    const auto copy_weights = [&](int i) {
        const int k = first_k(i), stage = i % Slots::stages;
#pragma unroll
        for (int gate = 0; gate < gates; ++gate)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int unit = first_unit + 8 * half + lane / 4;
                const bool inside = unit < hidden && k < hidden;
                const T* const from =
                    own.weight_hh + (inside ? (std::int64_t{gate} * hidden + unit) * hidden + k : std::int64_t{0});
                uint4* const to = slot(stage, 2 * gate + half, thread);
                if constexpr (vectors) {
                    cp_async_16_if(to, from, inside);
                } else {
                    Vector<T, width> piece;
#pragma unroll
                    for (int e = 0; e < width; ++e)
                        piece.elements[e] = inside && k + e < hidden ? from[e] : static_cast<T>(0.0f);
                    memcpy(to, piece.elements, sizeof *to);
                }
            }
    };
    const T* const before = own.h[step % 2];
    const auto copy_h = [&](int i) {
        const int k = first_k(i), stage = i % Slots::stages;
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile) {
            const int n = first_sequence + tile * tile_sequences + lane / 4;
            const int elements = n < layer.batch ? min(max(hidden - k, 0), width) : 0;
            const T* const from = before + (elements > 0 ? std::int64_t{n} * layer.h_stride + k : std::int64_t{0});
            cp_async_16(slot(stage, 2 * gates + tile, thread), from, elements * static_cast<int>(sizeof(T)));
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

    // A thread's cells, one in each pass: what they need that no step makes.
    constexpr int passes = tiles / Meeting::tiles_at_once;
    const int unit = first_unit + thread % block_units;
    const auto sequence_of = [&](int pass) {
        return first_sequence + pass * Meeting::tiles_at_once * tile_sequences + thread / block_units;
    };
    const auto has_cell = [&](int pass) {
        return thread < Meeting::tiles_at_once * tile_sequences * block_units && unit < hidden &&
               sequence_of(pass) < layer.batch;
    };
    bool runs[passes];
    int row[passes] = {};  // of gates_x and out
    S a[passes][gates], bias_n[passes];
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
        runs[pass] = false;
        bias_n[pass] = S(0);
        if (!has_cell(pass)) continue;
        const int n = sequence_of(pass);
        const int steps = static_cast<int>(steps_of(layer.lengths[n], layer.frames_per_step, layer.steps));
        runs[pass] = step < steps;
        row[pass] = (reverse && runs[pass] ? steps - 1 - step : step) * layer.batch + n;
        if (!runs[pass]) continue;
#pragma unroll
        for (int gate = 0; gate < gates; ++gate) {
            const std::int64_t column = std::int64_t{gate} * hidden + unit;
            const S bias_hh = static_cast<S>(own.bias_hh[column]);
            a[pass][gate] = static_cast<S>(own.gates_x[std::int64_t{row[pass]} * gates * hidden + column]) +
                            static_cast<S>(own.bias_ih[column]);
            if (cell == Cell::gru && gate == 2)
                bias_n[pass] = bias_hh;
            else
                a[pass][gate] += bias_hh;
        }
    }

    wait_for_previous();
    typename Core::template Products<gates, tiles> products;
    S h[passes], c[passes];  // past L1, where another block of this SM may have left what stood beside them earlier
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
        h[pass] = c[pass] = S(0);
        if (step == 0 || !runs[pass]) continue;
        const int n = sequence_of(pass);
        if constexpr (cell == Cell::gru)
            h[pass] = static_cast<S>(__ldcg(before + std::int64_t{n} * layer.h_stride + unit));
        if constexpr (cell == Cell::lstm) c[pass] = __ldcg(own.c + std::int64_t{n} * hidden + unit);
    }
    if (step > 0) {
#pragma unroll
        for (int i = 0; i < Slots::stages; ++i) {
            if (i < own_chunks) copy_h(i);
            cp_async_commit();
        }
        for (int i = 0; i < own_chunks; ++i) {
            cp_async_wait<Slots::stages - 1>();
            __syncwarp();  // lanes may take h of others; no read of a slot moves up here
            const int stage = i % Slots::stages;
            uint4 weights[gates][2];
#pragma unroll
            for (int gate = 0; gate < gates; ++gate)
#pragma unroll
                for (int half = 0; half < 2; ++half) weights[gate][half] = *slot(stage, 2 * gate + half, thread);
            products.add(
                weights, [&](int tile, int of_lane) { return *slot(stage, 2 * gates + tile, thread - lane + of_lane); },
                lane);
            __syncwarp();  // nor down behind the copies
            if (i + Slots::stages < own_chunks) {
                copy_weights(i + Slots::stages);
                copy_h(i + Slots::stages);
            }
            cp_async_commit();
        }
        products.finish(lane);
        cp_async_wait_all();
        __syncthreads();  // sums take the ring's place
    }

    S* const sums = reinterpret_cast<S*>(smem);
    T* const after = own.h[(step + 1) % 2];
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
        S of_gates[gates] = {};
        if (step > 0) {
            if (pass > 0) __syncthreads();  // the pass before has read its sums
#pragma unroll
            for (int tile = 0; tile < Meeting::tiles_at_once; ++tile)
#pragma unroll
                for (int gate = 0; gate < gates; ++gate)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        sums[warp * Meeting::of_warp + ((tile * gates + gate) * 4 + e) * Meeting::lanes + lane] =
                            products.sums[gate][pass * Meeting::tiles_at_once + tile][e];
            __syncthreads();
            if (has_cell(pass)) {
                const int u = thread % block_units, n = thread / block_units;
                const int from_lane = u % 8 * 4 + n % tile_sequences / 2, e = u / 8 * 2 + n % 2;
                const int tile = n / tile_sequences;
#pragma unroll
                for (int gate = 0; gate < gates; ++gate)
#pragma unroll
                    for (int w = 0; w < step_warps; ++w)
                        of_gates[gate] +=
                            sums[w * Meeting::of_warp + ((tile * gates + gate) * 4 + e) * Meeting::lanes + from_lane];
            }
        }
        if (!has_cell(pass)) continue;
        const int n = sequence_of(pass);
        T next = static_cast<T>(0.0f);  // behind the end h is multiplied on, and thrown away
        if (runs[pass]) {
            next = static_cast<T>(next_h<cell>(a[pass], bias_n[pass], of_gates, h[pass], c[pass]));
            if constexpr (cell == Cell::lstm) own.c[std::int64_t{n} * hidden + unit] = c[pass];
        }
        after[std::int64_t{n} * layer.h_stride + unit] = next;
        own.out[std::int64_t{row[pass]} * hidden + unit] = next;
    }
}

/// Lets `kernel` have so much shared memory on this device.
template <auto kernel>
void allow_shared_memory(int bytes) {
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

/// All steps of a layer.
template <class Core, Cell cell, int tiles, bool vectors>
void launch_steps(const Layer<typename Core::T>& layer, cudaStream_t stream) {
    constexpr int bytes = step_smem_bytes<typename Core::S, gates_of(cell), tiles>();
    constexpr auto kernel = recurrent_step<Core, cell, tiles, vectors>;
    allow_shared_memory<kernel>(bytes);
    const dim3 grid(static_cast<unsigned>(2 * divide_up(layer.hidden, block_units)),
                    static_cast<unsigned>(divide_up(layer.batch, tiles * tile_sequences)));
    // The first launch waits for all before it, so that the others, which read weights and gates_x early, may do so.
    kernel<<<grid, step_threads, bytes, stream>>>(layer, 0);
    KBENCH_CUDA_LAUNCHED("recurrent_step");
    for (int step = 1; step < layer.steps; ++step)
        launch_behind(kernel, grid, dim3(step_threads), bytes, stream, layer, step);
}

template <class Core, Cell cell>
void launch_cell(const Layer<typename Core::T>& layer, cudaStream_t stream) {
    using T = typename Core::T;
    const auto whole = [&](const DirectionOf<T>& direction) {
        return layer.hidden % vector_width<T> == 0 && reinterpret_cast<std::uintptr_t>(direction.weight_hh) % 16 == 0;
    };
    if (!whole(layer.directions[0]) || !whole(layer.directions[1]))
        return launch_steps<Core, cell, 1, false>(layer, stream);
    if constexpr (Core::most_tiles >= 4) {
        if (layer.batch > 2 * tile_sequences) return launch_steps<Core, cell, 4, true>(layer, stream);
    }
    if constexpr (Core::most_tiles >= 2) {
        if (layer.batch > tile_sequences) return launch_steps<Core, cell, 2, true>(layer, stream);
    }
    launch_steps<Core, cell, 1, true>(layer, stream);
}

/// A precision's kernels. Each is compiled in a file of its own.
template <class Core>
void launch_layer(const RecurrentProblem& problem, const RecurrentDirection& forward, const RecurrentDirection& reverse,
                  const std::int32_t* lengths, void* workspace, cudaStream_t stream) {
    const auto layer = layer_of<typename Core::T>(problem, forward, reverse, lengths, workspace);
    switch (problem.cell) {
        case Cell::lstm: return launch_cell<Core, Cell::lstm>(layer, stream);
        case Cell::gru: return launch_cell<Core, Cell::gru>(layer, stream);
        case Cell::rnn: return launch_cell<Core, Cell::rnn>(layer, stream);
    }
}

}  // namespace kbench::cuda::recurrent_layer
