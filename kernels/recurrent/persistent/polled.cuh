// The persistent LSTM whose blocks poll h itself: they read it again until no word is the NaN that no h equals.
// persistent.h describes the method. Compiled for sm_90a only (CMakeLists.txt).
//
// Sequences are taken in tiles of `columns`, which do not depend on each other; a turn is one step of one tile. While
// h of a tile travels between the blocks, which takes about 1000 cycles, they compute the next tile's turn.
//
// A turn of a block: each of its four warpgroups has a quarter of h[t - 1] and multiplies it with its quarter of the
// weights. Their sums meet in shared memory. The tile's owners, columns / 8 of the warpgroups, turn them into c and h
// and store h for all blocks of the direction. Meanwhile the other warpgroups go on to the next turn's product. A
// warpgroup requests h of the next turn before its sums are done, so that L2 answers while cells are computed.
#pragma once

#include "kernels/recurrent/persistent/device.cuh"

namespace kbench::cuda::persistent {

/// Barriers on the sums of all warpgroups; `arrive` is for warpgroups that only write theirs.
__device__ inline void sync_sums(int turn) {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + warpgroups + turn % 2), "n"(threads) : "memory");
}
__device__ inline void arrive_sums(int turn) {
    asm volatile("bar.arrive %0, %1;" ::"r"(1 + warpgroups + turn % 2), "n"(threads) : "memory");
}
__device__ inline void sync_warpgroup(int warpgroup) {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + warpgroup), "n"(warpgroup_threads) : "memory");
}

__device__ inline void prefetch_to_l2(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

template <typename T, int k_steps, int columns, PersistentVariant variant>
__global__ __launch_bounds__(threads, 1) void polled_lstm_kernel(const __grid_constant__ Arguments arguments) {
    constexpr int quarter = k_steps * depth * columns;                                 // elements of h
    constexpr int pieces = (quarter / 8 + warpgroup_threads - 1) / warpgroup_threads;  // 16-byte pieces per thread
    constexpr int owner_threads = columns * units, owners = threads / owner_threads;
    constexpr int sums_of_turn = warpgroups * columns * sums_stride;
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ int lengths[polled_batch];
    __shared__ __align__(16) float biases[units][4];
    auto* const h_shared = reinterpret_cast<std::uint16_t*>(memory);
    auto* const sums_shared = reinterpret_cast<float*>(memory + 2 * warpgroups * quarter * 2);
    float* const c_shared = sums_shared + sum_buffers * sums_of_turn;

    const int hidden = arguments.hidden, batch = arguments.batch, blocks = hidden / units, tiles = arguments.tiles;
    const int direction = arguments.first_direction + static_cast<int>(blockIdx.x) / blocks;
    const int block = static_cast<int>(blockIdx.x) % blocks;
    const bool reverse = direction == 1;
    const PersistentDirection& operands = arguments.directions[direction];
    const int thread = static_cast<int>(threadIdx.x);
    // Broadcast from lane 0, so that the compiler sees a warp-uniform value and builds each descriptor once per warp.
    const int warpgroup = __shfl_sync(0xffffffff, thread / warpgroup_threads, 0);
    const int in_warpgroup = thread % warpgroup_threads, warp = in_warpgroup / 32, lane = thread % 32;

    // Sequences end at hidden, so the last quarters may be shorter or empty. Zeros take part in their products, and
    // stand for h before the first step. c starts as 0, too.
    for (int i = thread; i < 2 * warpgroups * quarter / 8; i += threads)
        reinterpret_cast<uint4*>(h_shared)[i] = make_uint4(0, 0, 0, 0);
    for (int i = thread; i < tiles * owner_threads; i += threads) c_shared[i] = 0;
    for (int n = thread; n < polled_batch; n += threads)
        lengths[n] = n < batch ? static_cast<int>(steps_of(arguments.lengths[n], arguments.frames_per_step,
                                                           static_cast<std::int64_t>(arguments.steps)))
                               : 0;
    if (thread < rows) {
        const int at = gate_of(thread) * hidden + block * units + unit_of(thread);
        biases[unit_of(thread)][gate_of(thread)] = widened<T>(static_cast<const std::uint16_t*>(operands.bias_ih)[at]) +
                                                   widened<T>(static_cast<const std::uint16_t*>(operands.bias_hh)[at]);
    }
    fence_async_shared();
    __syncthreads();
    int last = 0;
    for (int n = 0; n < batch; ++n) last = max(last, lengths[n]);

    // The weights, kept for all steps.
    std::uint32_t a[k_steps][4];
    const auto* weight = static_cast<const std::uint16_t*>(operands.weight_hh);
#pragma unroll
    for (int s = 0; s < k_steps; ++s)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = warp * 16 + fragment_row(lane, i);
            const int k = (warpgroup * k_steps + s) * depth + fragment_column(lane, i);
            const std::int64_t at =
                (static_cast<std::int64_t>(gate_of(row)) * hidden + block * units + unit_of(row)) * hidden + k;
            a[s][i] = k < hidden ? *reinterpret_cast<const std::uint32_t*>(weight + at) : 0;
        }

    // The cell of this thread: one unit of one sequence of each tile that it owns, tiles `owner`, `owner` + owners, ...
    const int owner = warpgroup * warpgroup_threads / owner_threads, cell = thread % owner_threads;
    const int unit = cell % units, column = cell / units;
    const int global_unit = block * units + unit;

    // The input's contribution to the gates of this thread's next cell, loaded from L2 a turn before it is needed.
    std::uint16_t x[4] = {};
    constexpr int ahead = 2;             // prefetched to L2 so many steps early
    const int gates_bytes = 8 * hidden;  // per row
    const int unit_ahead = unit * 2 * hidden + (reverse ? -ahead : ahead) * batch * gates_bytes;  // a lane per gate
    const auto* const gates_x = static_cast<const unsigned char*>(operands.gates_x) + 2 * global_unit;
    const auto ask_for_gates = [&](int step, int tile) {
        if (variant == PersistentVariant::no_gates || tile % owners != owner) return;
        const int n = tile * columns + column, left = lengths[n] - 1 - step;
        if (left < 0) return;
        const unsigned char* const row =
            gates_x + static_cast<std::int64_t>((reverse ? left : step) * batch + n) * gates_bytes;
#pragma unroll
        for (int g = 0; g < 4; ++g) x[g] = load_once(row + g * 2 * hidden);
        if (unit < 4 && left >= ahead) prefetch_to_l2(row + unit_ahead);
    };

    // Bytes of h per tile, per step and in all slots; how much of this warpgroup's quarter follows this thread's first
    // 16-byte piece; and that part of it in flight to shared memory. From turn to turn, h goes to the next tile's place
    // in a ring.
    const unsigned tile_bytes = static_cast<unsigned>(hidden * columns * 2), step_bytes = tile_bytes * tiles;
    const unsigned ring_bytes = polled_slots * step_bytes;
    const auto before = [&](unsigned place, unsigned bytes) {
        return place >= bytes ? place - bytes : place + ring_bytes - bytes;
    };
    const int present = max(0, min(k_steps, blocks - warpgroup * k_steps)) * units * columns / 8 - in_warpgroup;
    const unsigned char* const h_from = arguments.h[direction] + warpgroup * quarter * 2 + in_warpgroup * 16;
    unsigned char* const h_to = arguments.h[direction] + h_offset(global_unit, column, columns) * 2;
    uint4 v[pieces];
    const auto ask_for_piece = [&](int i, unsigned place) {
        if (i * warpgroup_threads < present)
            v[i] = load_relaxed(reinterpret_cast<const uint4*>(h_from + place) + i * warpgroup_threads);
    };
#pragma unroll
    for (uint4& piece : v) piece = make_uint4(0, 0, 0, 0);

    float* const sums_to =
        sums_shared + warpgroup * columns * sums_stride + sum_offset(warp * 16 + sum_row(lane, 0), sum_column(lane, 0));
    const float* const sums_from = sums_shared + sum_offset(row_of(unit, 0), column);

    unsigned char* const out = static_cast<unsigned char*>(operands.out) + 2 * global_unit;

    PhaseClock<variant == PersistentVariant::clocks> clock;
    ask_for_gates(0, 0);
    clock.start();
    const int turns = last * tiles;
    int step = 0, tile = 0;
    unsigned place = 0;
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
        const bool ends_step = tile + 1 == tiles;
        const int next_step = ends_step ? step + 1 : step, next_tile = ends_step ? 0 : tile + 1;
        // Two buffers are enough: a warp that is here has passed its warpgroup's barrier of the turn before, so all
        // products of that warpgroup two turns before are done.
        std::uint16_t* const h_quarter = h_shared + (turn % 2 * warpgroups + warpgroup) * quarter;
        if (step > 0) {
            const unsigned from = before(place, step_bytes);
            if (tiles == 1) {
#pragma unroll
                for (int i = 0; i < pieces; ++i) ask_for_piece(i, from);
            }
            if constexpr (variant != PersistentVariant::no_wait) {
                // A word is written at once, so half a word is never missing alone.
                const auto is_missing = [](const uint4& piece) {
                    return piece.x == missing || piece.y == missing || piece.z == missing || piece.w == missing;
                };
                Patience patience;
                for (bool again = true; again; patience.wait()) {
                    again = false;
#pragma unroll
                    for (int i = 0; i < pieces; ++i)
                        if (is_missing(v[i])) {
                            again = true;
                            ask_for_piece(i, from);
                        }
                }
            }
            clock.end(PersistentPhase::wait);
#pragma unroll
            for (int i = 0; i < pieces; ++i)
                if (i * warpgroup_threads < present)
                    reinterpret_cast<uint4*>(h_quarter)[in_warpgroup + i * warpgroup_threads] = v[i];
            fence_async_shared();
        }
        sync_warpgroup(warpgroup);
        clock.end(PersistentPhase::load);

        float d[columns / 2];
        if constexpr (variant == PersistentVariant::no_product) {
#pragma unroll
            for (float& sum : d) sum = 0;
        } else {
            const unsigned h_address = shared_address(h_quarter);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int s = 0; s < k_steps; ++s) {
                const std::uint64_t at = descriptor(h_address + s * 2 * leading_bytes(columns), columns);
                if (s == 0)
                    multiply<T, columns, 0>(d, a[s], at);
                else
                    multiply<T, columns, 1>(d, a[s], at);
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
            for (float& sum : d) asm volatile("" : "+f"(sum)::"memory");
        }
        clock.end_with(PersistentPhase::product, d[0]);

        const int sums = turn % sum_buffers * sums_of_turn;
#pragma unroll
        for (int i = 0; i < columns / 2; ++i) sums_to[sums + sum_offset(sum_row(0, i), sum_column(0, i))] = d[i];
        const unsigned next_place = place + tile_bytes < ring_bytes ? place + tile_bytes : 0;
        if (tiles > 1 && next_step > 0 && next_step < last) {
            const unsigned from = before(next_place, step_bytes);
#pragma unroll
            for (int i = 0; i < pieces; ++i) ask_for_piece(i, from);
        }
        const int n = tile * columns + column;
        const bool is_owner = tile % owners == owner;
        int length = 0;
        float c = 0, gate[4] = {};
        if (is_owner) {
            length = lengths[n];
            c = c_shared[tile * owner_threads + cell];
#pragma unroll
            for (int g = 0; g < 4; ++g) gate[g] = widened<T>(x[g]) + biases[unit][g];
        }
        if (is_owner || all_wait(tile, ends_step))
            sync_sums(turn);
        else
            arrive_sums(turn);
        clock.end(PersistentPhase::sums);

        if (is_owner) {
#pragma unroll
            for (int w = 0; w < warpgroups; ++w) {
                const float4 part = *reinterpret_cast<const float4*>(sums_from + sums + w * columns * sums_stride);
                gate[0] += part.x;
                gate[1] += part.y;
                gate[2] += part.z;
                gate[3] += part.w;
            }
            std::uint32_t h = 0;  // after a sequence's end, and where there is no sequence
            if (step < length) {
                if constexpr (variant == PersistentVariant::no_cell) {
                    h = rounded<T>(gate[0] + gate[1] + gate[2] + gate[3]);
                } else {
                    h = rounded<T>(lstm_cell(gate, c));
                    c_shared[tile * owner_threads + cell] = c;
                }
            }
            const std::uint32_t pair = h | __shfl_down_sync(0xffffffff, h, 1) << 16;
            if (unit % 2 == 0) {
                store_relaxed(reinterpret_cast<std::uint32_t*>(h_to + place), pair);
                // The sums contain all of the tile's h[step - 1], which its blocks wrote after reading h[step - 2].
                if (step >= 2)
                    store_relaxed(reinterpret_cast<std::uint32_t*>(h_to + before(place, 2 * step_bytes)), missing);
                if (n < batch) {
                    const int t = reverse && step < length ? length - 1 - step : step;
                    *reinterpret_cast<std::uint32_t*>(out + static_cast<std::int64_t>(t * batch + n) * (2 * hidden)) =
                        pair;
                }
            }
        }
        clock.end(PersistentPhase::cell);
        // A slot that is emptied in step t is polled again in step t + 14 at the earliest. In between lie a fence of
        // the block that emptied it (by step t + 6), an h that this block writes in the next step, and a fence of the
        // reader after that (by step t + 13).
        if (ends_step && step % 7 == 6) fence_gpu();
        if (next_step < last) ask_for_gates(next_step, next_tile);
        clock.end(PersistentPhase::publish);
        if (variant == PersistentVariant::saves && is_owner && n < batch) {
            const bool runs = step < length;
            const int t = reverse && runs ? length - 1 - step : step;
            save<T>(operands, static_cast<std::int64_t>(t) * batch + n, hidden, global_unit, gate, c, runs);
        }
        step = next_step;
        tile = next_tile;
        place = next_place;
    }
    if (thread == 0) clock.write(arguments.clocks + (direction * blocks + block) * persistent_phases);

    // Steps in which every sequence has ended.
    for (std::int64_t row = static_cast<std::int64_t>(last) * batch + thread / units;
         row < static_cast<std::int64_t>(arguments.steps) * batch; row += threads / units) {
        const int of_row = block * units + thread % units;
        static_cast<std::uint16_t*>(operands.out)[row * hidden + of_row] = 0;
        if constexpr (variant == PersistentVariant::saves) save<T>(operands, row, hidden, of_row, {}, 0, false);
    }
}

template <typename T, int k_steps, int columns>
const void* polled_kernel_of(PersistentVariant variant) {
    const auto address = [](auto kernel) { return reinterpret_cast<const void*>(kernel); };
    using enum PersistentVariant;
    if (variant == plain) return address(polled_lstm_kernel<T, k_steps, columns, plain>);
    if (variant == saves) return address(polled_lstm_kernel<T, k_steps, columns, saves>);
    if (variant == clocks) return address(polled_lstm_kernel<T, k_steps, columns, clocks>);
    // Variants that leave a part out exist for hidden 1024 in fp16 only.
    if constexpr (std::is_same_v<T, __half> && k_steps == 16) switch (variant) {
            case plain:
            case saves:
            case clocks: break;
            case no_wait: return address(polled_lstm_kernel<T, k_steps, columns, no_wait>);
            case no_product: return address(polled_lstm_kernel<T, k_steps, columns, no_product>);
            case no_cell: return address(polled_lstm_kernel<T, k_steps, columns, no_cell>);
            case no_gates: return address(polled_lstm_kernel<T, k_steps, columns, no_gates>);
        }
    return nullptr;
}

template <typename T, int k_steps>
const void* polled_kernel_of(int columns, PersistentVariant variant) {
    switch (columns) {
        case 8: return polled_kernel_of<T, k_steps, 8>(variant);
        case 16: return polled_kernel_of<T, k_steps, 16>(variant);
        case 32:  // with hidden 1024, registers could not hold the weights and what is in flight
            if constexpr (k_steps <= 8) return polled_kernel_of<T, k_steps, 32>(variant);
            return nullptr;
        default: return nullptr;
    }
}

template <typename T>
const void* polled_kernel_of(int k_steps, int columns, PersistentVariant variant) {
    switch (k_steps) {
        case 4: return polled_kernel_of<T, 4>(columns, variant);
        case 8: return polled_kernel_of<T, 8>(columns, variant);
        case 16: return polled_kernel_of<T, 16>(columns, variant);
        default: return nullptr;
    }
}

}  // namespace kbench::cuda::persistent
