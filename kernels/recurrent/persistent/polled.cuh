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

#include "kernels/recurrent/persistent/stages.cuh"

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

/// The cell of a thread: one unit of one sequence of each tile that it owns, tiles `owner`, `owner` + owners, ...
template <int columns>
struct PolledCell {
    static constexpr int owner_threads = columns * units, owners = threads / owner_threads;

    const int owner, index, unit_of_block, column, unit;

    __forceinline__ __device__ explicit PolledCell(const Thread& me)
        : owner(me.warpgroup * warpgroup_threads / owner_threads),
          index(me.index % owner_threads),
          unit_of_block(index % units),
          column(index / units),
          unit(me.block * units + unit_of_block) {}

    __forceinline__ __device__ bool is_of(int tile) const { return tile % owners == owner; }
};

/// Places of h in bytes: from turn to turn, h goes to the next tile's place in a ring.
struct PolledRing {
    const unsigned tile_bytes, step_bytes, bytes;

    __forceinline__ __device__ PolledRing(const Thread& me, int columns)
        : tile_bytes(static_cast<unsigned>(me.hidden * columns * 2)),
          step_bytes(tile_bytes * me.tiles),
          bytes(polled_slots * step_bytes) {}

    __forceinline__ __device__ unsigned after(unsigned place) const {
        return place + tile_bytes < bytes ? place + tile_bytes : 0;
    }
    __forceinline__ __device__ unsigned before(unsigned place, unsigned distance) const {
        return place >= distance ? place - distance : place + bytes - distance;
    }
};

/// Loads the lengths of all sequences, and the sums of both biases of the block's units.
template <typename T>
__forceinline__ __device__ void load_lengths_and_biases(int (&lengths)[polled_batch], float (&biases)[units][4],
                                                        const Thread& me) {
    for (int n = me.index; n < polled_batch; n += threads) lengths[n] = n < me.batch ? length_of(me.arguments, n) : 0;
    if (me.index < rows) {
        const int row = gate_of(me.index) * me.hidden + me.block * units + unit_of(me.index);
        biases[unit_of(me.index)][gate_of(me.index)] = bias_of<T>(me.operands, row);
    }
}

/// What the input contributes to the gates of a thread's next cell, loaded from L2 a turn before it is needed.
template <PersistentVariant variant, int columns>
struct PolledGates {
    static constexpr int steps_ahead = 2;  ///< so many steps early it is prefetched to L2

    const int row_bytes, ahead_bytes;
    const unsigned char* const from;

    __forceinline__ __device__ PolledGates(const Thread& me, const PolledCell<columns>& cell)
        : row_bytes(8 * me.hidden),
          // The first lanes of a row's 16 prefetch a gate each.
          ahead_bytes(cell.unit_of_block * 2 * me.hidden +
                      (me.reverse ? -steps_ahead : steps_ahead) * me.batch * row_bytes),
          from(static_cast<const unsigned char*>(me.operands.gates_x) + 2 * cell.unit) {}

    /// Asks for x of a step's tile, without waiting for it.
    __forceinline__ __device__ void ask(std::uint16_t (&x)[4], const int (&lengths)[polled_batch], const Thread& me,
                                        const PolledCell<columns>& cell, int step, int tile) const {
        if (variant == PersistentVariant::no_gates || !cell.is_of(tile)) return;
        const int n = tile * columns + cell.column, left = lengths[n] - 1 - step;
        if (left < 0) return;
        const unsigned char* const row =
            from + static_cast<std::int64_t>((me.reverse ? left : step) * me.batch + n) * row_bytes;
#pragma unroll
        for (int g = 0; g < 4; ++g) x[g] = load_once(row + g * 2 * me.hidden);
        if (cell.unit_of_block < 4 && left >= steps_ahead) prefetch_to_l2(row + ahead_bytes);
    }
};

/// A thread's part of its warpgroup's quarter of h, on its way from global to shared memory in pieces of 16 bytes.
template <int k_steps, int columns>
struct PolledQuarter {
    static constexpr int elements = k_steps * depth * columns;
    static constexpr int count = (elements / 8 + warpgroup_threads - 1) / warpgroup_threads;

    const int in_warpgroup;
    const int present;  ///< pieces of the quarter from this thread's first one on
    const unsigned char* const from;

    __forceinline__ __device__ explicit PolledQuarter(const Thread& me)
        : in_warpgroup(me.in_warpgroup),
          present(producers_of_quarter<k_steps>(me) * units * columns / 8 - me.in_warpgroup),
          from(me.arguments.h[me.direction] + me.warpgroup * elements * 2 + me.in_warpgroup * 16) {}

    /// Asks for all pieces, without waiting for them.
    __forceinline__ __device__ void ask(uint4 (&pieces)[count], unsigned place) const {
#pragma unroll
        for (int i = 0; i < count; ++i) ask(pieces, i, place);
    }
    /// Asks for pieces again until no word is missing. A word is written at once, so half a word is never missing
    /// alone.
    __forceinline__ __device__ void wait(uint4 (&pieces)[count], unsigned place) const {
        const auto is_missing = [](const uint4& piece) {
            return piece.x == missing || piece.y == missing || piece.z == missing || piece.w == missing;
        };
        Patience patience;
        for (bool again = true; again; patience.wait()) {
            again = false;
#pragma unroll
            for (int i = 0; i < count; ++i)
                if (is_missing(pieces[i])) {
                    again = true;
                    ask(pieces, i, place);
                }
        }
    }
    /// Stores the pieces in shared memory, for tensor cores.
    __forceinline__ __device__ void share(std::uint16_t* shared, const uint4 (&pieces)[count]) const {
#pragma unroll
        for (int i = 0; i < count; ++i)
            if (i * warpgroup_threads < present)
                reinterpret_cast<uint4*>(shared)[in_warpgroup + i * warpgroup_threads] = pieces[i];
        fence_async_shared();
    }

  private:
    __forceinline__ __device__ void ask(uint4 (&pieces)[count], int i, unsigned place) const {
        if (i * warpgroup_threads < present)
            pieces[i] = load_relaxed(reinterpret_cast<const uint4*>(from + place) + i * warpgroup_threads);
    }
};

/// Stores this thread's part of its warpgroup's product where the tile's owners find it.
template <int columns>
__forceinline__ __device__ void share_tile(float* to, const float (&d)[columns / 2]) {
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) to[sum_offset(sum_row(0, i), sum_column(0, i))] = d[i];
}

/// Stores h of two units for all blocks of the direction, and empties what they polled two steps before.
__forceinline__ __device__ void publish_pair(std::uint32_t pair, unsigned char* to, const PolledRing& ring,
                                             unsigned place, int step) {
    store_relaxed(reinterpret_cast<std::uint32_t*>(to + place), pair);
    // The sums contain all of the tile's h[step - 1], which its blocks wrote after reading h[step - 2].
    if (step >= 2)
        store_relaxed(reinterpret_cast<std::uint32_t*>(to + ring.before(place, 2 * ring.step_bytes)), missing);
}

/// Makes sure that slots have been emptied before they are polled again. Called at the end of each step.
__forceinline__ __device__ void fence_emptied(int step) {
    // A slot that is emptied in step t is polled again in step t + 14 at the earliest. In between lie a fence of the
    // block that emptied it (by step t + 6), an h that this block writes in the next step, and a fence of the reader
    // after that (by step t + 13).
    if (step % 7 == 6) fence_gpu();
}

/// Stores h of two units as the layer's output.
__forceinline__ __device__ void store_out_pair(std::uint32_t pair, unsigned char* out, const Thread& me, int t, int n) {
    *reinterpret_cast<std::uint32_t*>(out + static_cast<std::int64_t>(t * me.batch + n) * (2 * me.hidden)) = pair;
}

/// Writes zeros for the steps from `first`, in which every sequence has ended.
template <typename T, PersistentVariant variant>
__forceinline__ __device__ void write_ended(const Thread& me, int first) {
    for (std::int64_t row = static_cast<std::int64_t>(first) * me.batch + me.index / units;
         row < static_cast<std::int64_t>(me.arguments.steps) * me.batch; row += threads / units) {
        const int unit = me.block * units + me.index % units;
        static_cast<std::uint16_t*>(me.operands.out)[row * me.hidden + unit] = 0;
        if constexpr (variant == PersistentVariant::saves) save<T>(me.operands, row, me.hidden, unit, {}, 0, false);
    }
}

template <typename T, int k_steps, int columns, PersistentVariant variant>
__global__ __launch_bounds__(threads, 1) void polled_lstm_kernel(const __grid_constant__ Arguments arguments) {
    using Cell = PolledCell<columns>;
    using Quarter = PolledQuarter<k_steps, columns>;
    constexpr int sums_of_turn = warpgroups * columns * sums_stride;
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ int lengths[polled_batch];
    __shared__ __align__(16) float biases[units][4];
    auto* const h_shared = reinterpret_cast<std::uint16_t*>(memory);
    auto* const sums_shared = reinterpret_cast<float*>(memory + 2 * warpgroups * Quarter::elements * 2);
    float* const c_shared = sums_shared + sum_buffers * sums_of_turn;

    const Thread me(arguments);
    clear_h(h_shared, 2 * warpgroups * Quarter::elements, me);
    for (int i = me.index; i < me.tiles * Cell::owner_threads; i += threads) c_shared[i] = 0;
    load_lengths_and_biases<T>(lengths, biases, me);
    fence_async_shared();
    __syncthreads();
    int last = 0;
    for (int n = 0; n < me.batch; ++n) last = max(last, lengths[n]);

    std::uint32_t a[k_steps][4];
    load_weights(a, me);
    const Cell cell(me);
    const PolledGates<variant, columns> gates(me, cell);
    std::uint16_t x[4] = {};
    const PolledRing ring(me, columns);
    const Quarter quarter(me);
    uint4 pieces[Quarter::count];
#pragma unroll
    for (uint4& piece : pieces) piece = make_uint4(0, 0, 0, 0);
    unsigned char* const h_to = arguments.h[me.direction] + h_offset(cell.unit, cell.column, columns) * 2;
    float* const sums_to = sums_shared + me.warpgroup * columns * sums_stride +
                           sum_offset(me.warp * 16 + sum_row(me.lane, 0), sum_column(me.lane, 0));
    const float* const sums_from = sums_shared + sum_offset(row_of(cell.unit_of_block, 0), cell.column);
    unsigned char* const out = static_cast<unsigned char*>(me.operands.out) + 2 * cell.unit;

    PhaseClock<variant == PersistentVariant::clocks> clock;
    gates.ask(x, lengths, me, cell, 0, 0);
    clock.start();
    const int turns = last * me.tiles;
    int step = 0, tile = 0;
    unsigned place = 0;
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
        const bool ends_step = tile + 1 == me.tiles;
        const int next_step = ends_step ? step + 1 : step, next_tile = ends_step ? 0 : tile + 1;
        // Two buffers are enough: a warp that is here has passed its warpgroup's barrier of the turn before, so all
        // products of that warpgroup two turns before are done.
        std::uint16_t* const h_quarter = h_shared + (turn % 2 * warpgroups + me.warpgroup) * Quarter::elements;
        if (step > 0) {
            const unsigned from = ring.before(place, ring.step_bytes);
            if (me.tiles == 1) quarter.ask(pieces, from);
            if constexpr (variant != PersistentVariant::no_wait) quarter.wait(pieces, from);
            clock.end(PersistentPhase::wait);
            quarter.share(h_quarter, pieces);
        }
        sync_warpgroup(me.warpgroup);
        clock.end(PersistentPhase::load);

        float d[columns / 2];
        multiply_quarter<T, k_steps, columns, variant>(d, a, shared_address(h_quarter));
        clock.end_with(PersistentPhase::product, d[0]);

        const int sums = turn % sum_buffers * sums_of_turn;
        share_tile<columns>(sums_to + sums, d);
        const unsigned next_place = ring.after(place);
        if (me.tiles > 1 && next_step > 0 && next_step < last)
            quarter.ask(pieces, ring.before(next_place, ring.step_bytes));
        const int n = tile * columns + cell.column;
        const bool is_owner = cell.is_of(tile);
        int length = 0;
        float c = 0, gate[4] = {};
        if (is_owner) {
            length = lengths[n];
            c = c_shared[tile * Cell::owner_threads + cell.index];
            begin_gates<T>(gate, x, biases[cell.unit_of_block]);
        }
        if (is_owner || all_wait(tile, ends_step))
            sync_sums(turn);
        else
            arrive_sums(turn);
        clock.end(PersistentPhase::sums);

        if (is_owner) {
            add_sums<columns>(gate, sums_from + sums);
            std::uint32_t h = 0;  // after a sequence's end, and where there is no sequence
            if (step < length) {
                h = step_cell<T, variant>(gate, c);
                if constexpr (variant != PersistentVariant::no_cell)
                    c_shared[tile * Cell::owner_threads + cell.index] = c;
            }
            const std::uint32_t pair = with_next_unit(h);
            if (cell.unit_of_block % 2 == 0) {
                publish_pair(pair, h_to, ring, place, step);
                if (n < me.batch) store_out_pair(pair, out, me, time_of(step, length, me.reverse), n);
            }
        }
        clock.end(PersistentPhase::cell);
        if (ends_step) fence_emptied(step);
        if (next_step < last) gates.ask(x, lengths, me, cell, next_step, next_tile);
        clock.end(PersistentPhase::publish);
        if (variant == PersistentVariant::saves && is_owner && n < me.batch) {
            const int t = time_of(step, length, me.reverse);
            save<T>(me.operands, static_cast<std::int64_t>(t) * me.batch + n, me.hidden, cell.unit, gate, c,
                    step < length);
        }
        step = next_step;
        tile = next_tile;
        place = next_place;
    }
    write_clock(clock, me);
    write_ended<T, variant>(me, last);
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
