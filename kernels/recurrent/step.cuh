// One step of a recurrent layer in one kernel, for both directions at once: the product of weight_hh with h of the step
// before, and the cell, so that no gate's value goes to memory.
//
// A block has 16 units of a direction with all their gates, and up to 8 sequences per tile. Its warps share k in chunks
// of 64 bytes, and their sums meet in shared memory at the end. So a weight is read once per step for all sequences of
// the block. With few sequences the step is bound by L2: 16 MB for both directions of an LSTM with hidden 1024 in fp16
// take 3 us, 32 MB in fp32 take 6 us.
//
// A lane copies what it needs itself into its own slots of shared memory, a ring of some chunks. A kernel fills its
// ring with weights before it waits for the step before (programmatic launch). That takes the launch and the first
// memory access off the serial chain of steps. So two blocks must fit into an SM.
#pragma once

#include "kernels/cp_async.cuh"
#include "kernels/programmatic.cuh"
#include "kernels/recurrent/cells.cuh"
#include "kernels/shared_memory.h"

namespace kbench::cuda::recurrent_layer {

/// Two blocks share sm_90's 228 KiB, of which the system takes 1 KiB for each.
inline constexpr int ring_bytes = 113 * 1024;

/// Slots of a chunk, and how many chunks fit into `room`.
template <int gates, int tiles, int room>
struct Ring {
    static constexpr int slots = 2 * gates + tiles;
    static constexpr int stage_bytes = slots * block_threads * 16;
    static constexpr int stages = room / stage_bytes < 8 ? room / stage_bytes : 8;
    static constexpr int bytes = stages * stage_bytes;
};

template <class S, Cell cell, int tiles, int room>
constexpr int step_smem_bytes() {
    constexpr int ring = Ring<gates_of(cell), tiles, room>::bytes, exchange = Exchange<S, gates_of(cell), tiles>::bytes;
    return ring > exchange ? ring : exchange;
}

/// Copies 16 bytes of a row of `hidden` weights, from element k on, to a slot: zeros behind the row's end, and all
/// zeros where it is not `inside`. With `vectors` rows end at whole slots, and the copy may go on when this returns.
template <bool vectors, typename T>
__device__ __forceinline__ void copy_piece(uint4* to, const T* from, bool inside, int k, int hidden) {
    if constexpr (vectors) {
        cp_async_if<16>(to, from, inside);
    } else {
        constexpr int width = vector_width<T>;
        Vector<T, width> piece;
#pragma unroll
        for (int e = 0; e < width; ++e) piece.elements[e] = inside && k + e < hidden ? from[e] : static_cast<T>(0.0f);
        memcpy(to, piece.elements, sizeof *to);
    }
}

/// grid: both directions' blocks of units, by tiles of sequences. `vectors`: rows of weights are whole 16-byte
/// chunks.
template <class Core, Cell cell, int tiles, bool vectors, int room>
__global__ void __launch_bounds__(block_threads, 2)
    recurrent_step(const __grid_constant__ Layer<typename Core::T> layer, int step) {
    using T = typename Core::T;
    using S = typename Core::S;
    constexpr int gates = gates_of(cell), width = vector_width<T>, chunk = 4 * width;
    using Slots = Ring<gates, tiles, room>;
    extern __shared__ __align__(16) unsigned char smem[];
    const auto slot = [](int stage, int index, int thread) {
        return reinterpret_cast<uint4*>(smem) + (stage * Slots::slots + index) * block_threads + thread;
    };

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, hidden = layer.hidden;
    const int blocks = gridDim.x / 2;
    const bool reverse = blockIdx.x >= blocks;
    const DirectionOf<T>& own = layer.directions[reverse];
    const int first_unit = (blockIdx.x - (reverse ? blocks : 0)) * block_units;
    const int first_sequence = blockIdx.y * tiles * tile_sequences;

    // Chunks warp, warp + 8, ...; every second step in reverse order, because the last chunks may still be in L2 when
    // the weights are larger than L2.
    const int chunks = (hidden + chunk - 1) / chunk, own_chunks = (chunks - warp + block_warps - 1) / block_warps;
    const auto first_k = [&](int i) {
        return (warp + block_warps * (step % 2 ? own_chunks - 1 - i : i)) * chunk + lane % 4 * width;
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
                copy_piece<vectors>(to, from, inside, k, hidden);
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

    Cells<Core, cell, tiles> cells(layer, own, first_unit, first_sequence);
    cells.read(layer, own, reverse, step);
    wait_for_previous();
    typename Core::template Products<gates, tiles> products;
    // Bypasses L1, where another block of this SM may have left an old copy.
#pragma unroll
    for (int pass = 0; pass < cells.passes; ++pass) {
        if (step == 0 || !cells.runs[pass]) continue;
        const std::int64_t n = cells.sequence[pass];
        if constexpr (cell == Cell::gru)
            cells.h[pass] = static_cast<S>(__ldcg(before + n * layer.h_stride + cells.unit));
        if constexpr (cell == Cell::lstm) cells.c[pass] = __ldcg(own.c + n * hidden + cells.unit);
    }
    if (step > 0) {
#pragma unroll
        for (int i = 0; i < Slots::stages; ++i) {
            if (i < own_chunks) copy_h(i);
            cp_async_commit();
        }
        for (int i = 0; i < own_chunks; ++i) {
            cp_async_wait<Slots::stages - 1>();
            __syncwarp();  // lanes may take h of others; no read of a slot may move up here
            const int stage = i % Slots::stages;
            uint4 weights[gates][2];
#pragma unroll
            for (int gate = 0; gate < gates; ++gate)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    weights[gate][half] = Core::prepare(*slot(stage, 2 * gate + half, thread));
            products.add(
                weights, [&](int tile, int of_lane) { return *slot(stage, 2 * gates + tile, thread - lane + of_lane); },
                lane);
            __syncwarp();  // nor down below the copies
            if (i + Slots::stages < own_chunks) {
                copy_weights(i + Slots::stages);
                copy_h(i + Slots::stages);
            }
            cp_async_commit();
        }
        products.finish(lane);
        cp_async_wait_all();
        __syncthreads();  // sums replace the ring
    }

    T* const after = own.h[(step + 1) % 2];
#pragma unroll
    for (int pass = 0; pass < cells.passes; ++pass) {
        S of_gates[gates] = {};
        if (step > 0) {
            if (pass > 0) __syncthreads();  // the pass before has read its sums
            Exchange<S, gates, tiles>::add_up(products, pass, reinterpret_cast<S*>(smem), of_gates);
        }
        if (!cells.has_cell(pass)) continue;
        const std::int64_t n = cells.sequence[pass];
        const T next = cells.advance(pass, of_gates);
        if (cell == Cell::lstm && cells.runs[pass]) own.c[n * hidden + cells.unit] = cells.c[pass];
        after[n * layer.h_stride + cells.unit] = next;
        own.out[std::int64_t{cells.row[pass]} * hidden + cells.unit] = next;
        cells.save(layer, own, pass);
    }
}

/// Runs all steps of a layer. Where this GPU has too little shared memory: with a number of tiles that needs less, or
/// a shorter ring where the sums leave no room for more tiles.
template <class Core, Cell cell, int tiles, bool vectors, int room = ring_bytes>
void launch_steps(const Layer<typename Core::T>& layer, cudaStream_t stream) {
    constexpr int bytes = step_smem_bytes<typename Core::S, cell, tiles, room>();
    if constexpr (bytes > least_shared_bytes) {
        constexpr int other_tiles = tiles > 1 ? 1 : std::min(2, Core::most_tiles);
        constexpr int other_room = other_tiles == tiles ? least_shared_bytes : room;
        static_assert(step_smem_bytes<typename Core::S, cell, other_tiles, other_room>() <= least_shared_bytes);
        if (bytes > shared_bytes_of_block())
            return launch_steps<Core, cell, other_tiles, vectors, other_room>(layer, stream);
    }
    constexpr auto kernel = recurrent_step<Core, cell, tiles, vectors, room>;
    allow_shared_memory(kernel, bytes);
    const dim3 grid(static_cast<unsigned>(2 * divide_up(layer.hidden, block_units)),
                    static_cast<unsigned>(divide_up(layer.batch, tiles * tile_sequences)));
    // The first launch waits for everything before it, so that the others may read weights and gates_x early.
    kernel<<<grid, block_threads, bytes, stream>>>(layer, 0);
    KBENCH_CUDA_LAUNCHED("recurrent_step");
    for (int step = 1; step < layer.steps; ++step)
        launch_behind(kernel, grid, dim3(block_threads), {.smem_bytes = bytes}, stream, layer, step);
}

template <class Core, Cell cell>
void launch_cell(const Layer<typename Core::T>& layer, cudaStream_t stream) {
    using T = typename Core::T;
    const auto whole = [&](const DirectionOf<T>& direction) {
        return layer.hidden % vector_width<T> == 0 && reinterpret_cast<std::uintptr_t>(direction.weight_hh) % 16 == 0;
    };
    if (!whole(layer.directions[0]) || !whole(layer.directions[1]))
        return launch_steps<Core, cell, 1, false, least_shared_bytes>(layer, stream);
    if constexpr (Core::most_tiles >= 4) {
        if (layer.batch > 2 * tile_sequences) return launch_steps<Core, cell, 4, true>(layer, stream);
    }
    if constexpr (Core::most_tiles >= 2) {
        if (layer.batch > tile_sequences) return launch_steps<Core, cell, 2, true>(layer, stream);
    }
    launch_steps<Core, cell, 1, true>(layer, stream);
}

/// A precision's kernels. Each precision is compiled in its own file.
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
