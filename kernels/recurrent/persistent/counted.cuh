// The persistent LSTM whose blocks exchange h by counters: h is written, then a counter is released; a block that sees
// the counter copies h in bulk. persistent.h describes the method. Compiled for sm_90a only (CMakeLists.txt).
//
// A step of a block: each of its four warpgroups waits for its quarter of h[t - 1] and multiplies it with its quarter
// of the weights. Their sums meet in shared memory. 16 threads per sequence turn them into c, which they keep, and h,
// which goes to all blocks of the direction. No barrier spans all blocks: a warpgroup waits for the 16 blocks of its
// quarter, and the directions never wait for each other.
#pragma once

#include "kernels/recurrent/persistent/stages.cuh"

namespace kbench::cuda::persistent {

/// The cells of a thread: one unit of up to two sequences.
template <int columns>
struct CountedCells {
    static constexpr int count = columns * units > threads ? columns* units / threads : 1;
    static constexpr int columns_at_once = threads / units;

    const int unit_of_block, first_column, unit;

    __forceinline__ __device__ explicit CountedCells(const Thread& me)
        : unit_of_block(me.index % units), first_column(me.index / units), unit(me.block * units + unit_of_block) {}

    /// Whether the thread has any; the same for a whole warp.
    __forceinline__ __device__ bool exist() const { return first_column < columns; }
    __forceinline__ __device__ int column(int i) const { return first_column + i * columns_at_once; }
};

/// Loads the lengths of the cells' sequences, and returns the longest of all lengths.
template <int columns, int count>
__forceinline__ __device__ int load_lengths(int (&length)[count], const CountedCells<columns>& cells,
                                            const Thread& me) {
    int last = 0;
    for (int n = 0; n < me.batch; ++n) {
        const int steps = length_of(me.arguments, n);
        last = max(last, steps);
#pragma unroll
        for (int i = 0; i < count; ++i)
            if (n == cells.column(i)) length[i] = steps;
    }
    return last;
}

/// Loads the sums of both biases of a unit's gates.
template <typename T>
__forceinline__ __device__ void load_biases(float (&bias)[4], const Thread& me, int unit) {
#pragma unroll
    for (int g = 0; g < 4; ++g) bias[g] = bias_of<T>(me.operands, g * me.hidden + unit);
}

/// The row of a sequence at time t, in what the kernel reads and writes.
__forceinline__ __device__ std::int64_t row_at(const Thread& me, int t, int column) {
    return static_cast<std::int64_t>(t) * me.row_batch + column;
}

/// Loads what the input contributes to a cell's gates. It is 0 where the sequence does not run any more.
template <PersistentVariant variant>
__forceinline__ __device__ void load_gates(std::uint16_t (&x)[4], const Thread& me, int t, int column, int unit,
                                           bool runs) {
    const auto* from =
        static_cast<const std::uint16_t*>(me.operands.gates_x) + row_at(me, t, column) * (4 * me.hidden) + unit;
#pragma unroll
    for (int g = 0; g < 4; ++g)
        x[g] = variant != PersistentVariant::no_gates && runs ? load_once(from + g * me.hidden) : 0;
}

/// Waits until blocks have released a counter that often.
template <PersistentVariant variant>
__forceinline__ __device__ void wait_for_blocks(const std::uint32_t* counter, int releases) {
    const auto all = static_cast<std::uint32_t>(releases);
    Patience patience;
    if constexpr (variant != PersistentVariant::no_wait)
        while (acquire(counter) < all) patience.wait();
}

/// Waits until h of a step is in shared memory.
__forceinline__ __device__ void wait_for_copy(const CopyBarrier& copied, int step) {
    Patience patience;
    while (!copied.is_past(static_cast<unsigned>(step) % 2)) patience.wait();
}

/// Stores this thread's part of its warpgroup's product where threads with cells find it.
template <int columns>
__forceinline__ __device__ void share_product(float* sums, const float (&d)[columns / 2], const Thread& me) {
    float* const own = sums + me.warpgroup * columns * sums_stride;
#pragma unroll
    for (int i = 0; i < columns / 2; ++i)
        own[sum_offset(me.warp * 16 + sum_row(me.lane, i), sum_column(me.lane, i))] = d[i];
}

/// Stores h for all blocks of the direction; every second thread stores its own and its neighbour's.
template <int columns>
__forceinline__ __device__ void publish_h(std::uint32_t h, unsigned char* slot, const CountedCells<columns>& cells,
                                          int column) {
    const std::uint32_t pair = with_next_unit(h);
    const std::size_t at = static_cast<std::size_t>(h_offset(cells.unit, column, columns)) * 2;
    if (cells.unit_of_block % 2 == 0) store_relaxed(reinterpret_cast<std::uint32_t*>(slot + at), pair);
}

/// Stores h as the layer's output.
__forceinline__ __device__ void store_out(std::uint32_t h, const Thread& me, int t, int column, int unit) {
    static_cast<std::uint16_t*>(me.operands.out)[row_at(me, t, column) * me.hidden + unit] =
        static_cast<std::uint16_t>(h);
}

/// Writes zeros for the steps from `first`, in which every sequence has ended.
template <typename T, PersistentVariant variant, int columns>
__forceinline__ __device__ void write_ended(const CountedCells<columns>& cells, const Thread& me, int first) {
    for (int t = first; t < me.arguments.steps; ++t)
        for (int column = cells.first_column; column < me.batch; column += cells.columns_at_once) {
            store_out(0, me, t, column, cells.unit);
            if constexpr (variant == PersistentVariant::saves)
                save<T>(me.operands, row_at(me, t, column), me.hidden, cells.unit, {}, 0, false);
        }
}

template <typename T, int k_steps, int columns, PersistentVariant variant>
__global__ __launch_bounds__(threads, 1) void counted_lstm_kernel(const __grid_constant__ Arguments arguments) {
    constexpr int quarter = k_steps * depth * columns;  // elements of h
    using Cells = CountedCells<columns>;
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ CopyBarrier copied[warpgroups];
    auto* const h_shared = reinterpret_cast<std::uint16_t*>(memory);
    auto* const sums = reinterpret_cast<float*>(memory + warpgroups * quarter * 2);

    const Thread me(arguments);
    clear_h(h_shared, warpgroups * quarter, me);
    if (me.index == 0)
        for (CopyBarrier& barrier : copied) barrier.init();
    fence_async();
    __syncthreads();

    std::uint32_t a[k_steps][4];
    load_weights(a, me);
    const Cells cells(me);
    const bool has_cell = cells.exist();
    int length[Cells::count] = {};
    float c[Cells::count] = {}, bias[4];
    const int last = load_lengths(length, cells, me);
    load_biases<T>(bias, me, cells.unit);

    const int producers = producers_of_quarter<k_steps>(me);
    const std::size_t slot_bytes = static_cast<std::size_t>(me.hidden) * columns * 2;
    unsigned char* const h_global = arguments.h[me.direction];
    const auto slot_of = [&](int step) { return h_global + step % counted_slots * slot_bytes; };
    std::uint16_t* const h_quarter = h_shared + me.warpgroup * quarter;
    const unsigned h_address = shared_address(h_quarter);
    const auto counter_of = [&](int of) {
        return arguments.counters + (me.direction * warpgroups + of) * (counter_bytes / 4);
    };

    PhaseClock<variant == PersistentVariant::clocks> clock;
    clock.start();
#pragma unroll 1
    for (int step = 0; step < last; ++step) {
        std::uint16_t x[Cells::count][4];  // loaded a microsecond before it is needed
#pragma unroll
        for (int i = 0; i < Cells::count; ++i) {
            const int t = me.reverse ? length[i] - 1 - step : step;
            load_gates<variant>(x[i], me, t, cells.column(i), cells.unit, step < length[i]);
        }

        if (step > 0 && producers > 0) {
            const unsigned char* const from = slot_of(step - 1) + me.warpgroup * quarter * 2;
            if (me.in_warpgroup == 0) {
                wait_for_blocks<variant>(counter_of(me.warpgroup), producers * step);
                clock.end(PersistentPhase::wait);
                fence_async();
                copied[me.warpgroup].copy(h_quarter, from, static_cast<unsigned>(producers * units * columns * 2));
            }
            wait_for_copy(copied[me.warpgroup], step - 1);
        }
        clock.end(PersistentPhase::load);

        float d[columns / 2];
        multiply_quarter<T, k_steps, columns, variant>(d, a, h_address);
        clock.end_with(PersistentPhase::product, d[0]);

        share_product<columns>(sums, d, me);
        __syncthreads();  // after it all of h[step - 1] has been read, and no product reads shared memory any more
        clock.end(PersistentPhase::sums);

        float gates[Cells::count][4];
        if (has_cell) {
#pragma unroll
            for (int i = 0; i < Cells::count; ++i) {
                const int column = cells.column(i);
                begin_gates<T>(gates[i], x[i], bias);
                add_sums<columns>(gates[i], sums + sum_offset(row_of(cells.unit_of_block, 0), column));
                std::uint32_t h = 0;  // after a sequence's end, and where there is no sequence
                if (step < length[i]) h = step_cell<T, variant>(gates[i], c[i]);
                publish_h(h, slot_of(step), cells, column);
                if (column < me.batch) store_out(h, me, time_of(step, length[i], me.reverse), column, cells.unit);
            }
        }
        clock.end(PersistentPhase::cell);

        __syncthreads();
        if (me.index == 0) release_one(counter_of(me.block / k_steps));
        clock.end(PersistentPhase::publish);
        if constexpr (variant == PersistentVariant::saves) {
#pragma unroll
            for (int i = 0; i < Cells::count; ++i) {
                const int column = cells.column(i);
                if (!has_cell || column >= me.batch) continue;
                const std::int64_t row = row_at(me, time_of(step, length[i], me.reverse), column);
                save<T>(me.operands, row, me.hidden, cells.unit, gates[i], c[i], step < length[i]);
            }
        }
    }
    write_clock(clock, me);
    if (has_cell) write_ended<T, variant>(cells, me, last);
}

template <typename T, int k_steps, int columns>
const void* counted_kernel_of(PersistentVariant variant) {
    const auto address = [](auto kernel) { return reinterpret_cast<const void*>(kernel); };
    using enum PersistentVariant;
    if (variant == plain) return address(counted_lstm_kernel<T, k_steps, columns, plain>);
    if (variant == saves) return address(counted_lstm_kernel<T, k_steps, columns, saves>);
    // The shapes for which a run takes these kernels also have clocks, for the account of its time.
    if constexpr (k_steps == 16 && columns >= 32)
        if (variant == clocks) return address(counted_lstm_kernel<T, k_steps, columns, clocks>);
    // Variants that leave a part out exist for hidden 1024 in fp16 only.
    if constexpr (std::is_same_v<T, __half> && k_steps == 16 && (columns == 8 || columns == 32)) switch (variant) {
            case plain:
            case saves: break;
            case clocks: return address(counted_lstm_kernel<T, k_steps, columns, clocks>);
            case no_wait: return address(counted_lstm_kernel<T, k_steps, columns, no_wait>);
            case no_product: return address(counted_lstm_kernel<T, k_steps, columns, no_product>);
            case no_cell: return address(counted_lstm_kernel<T, k_steps, columns, no_cell>);
            case no_gates: return address(counted_lstm_kernel<T, k_steps, columns, no_gates>);
        }
    return nullptr;
}

template <typename T, int k_steps>
const void* counted_kernel_of(int columns, PersistentVariant variant) {
    switch (columns) {
        case 8: return counted_kernel_of<T, k_steps, 8>(variant);
        case 16: return counted_kernel_of<T, k_steps, 16>(variant);
        case 32: return counted_kernel_of<T, k_steps, 32>(variant);
        case 64: return counted_kernel_of<T, k_steps, 64>(variant);
        default: return nullptr;
    }
}

template <typename T>
const void* counted_kernel_of(int k_steps, int columns, PersistentVariant variant) {
    switch (k_steps) {
        case 4: return counted_kernel_of<T, 4>(columns, variant);
        case 8: return counted_kernel_of<T, 8>(columns, variant);
        case 16: return counted_kernel_of<T, 16>(columns, variant);
        default: return nullptr;
    }
}

}  // namespace kbench::cuda::persistent
