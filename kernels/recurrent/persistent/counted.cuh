// The persistent LSTM whose blocks exchange h by counters: h is written, then a counter is released; a block that sees
// the counter copies h in bulk. persistent.h describes the method. Compiled for sm_90a only (CMakeLists.txt).
//
// A step of a block: each of its four warpgroups waits for its quarter of h[t - 1] and multiplies it with its quarter
// of the weights. Their sums meet in shared memory. 16 threads per sequence turn them into c, which they keep, and h,
// which goes to all blocks of the direction. No barrier spans all blocks: a warpgroup waits for the 16 blocks of its
// quarter, and the directions never wait for each other.
#pragma once

#include "kernels/recurrent/persistent/device.cuh"

namespace kbench::cuda::persistent {

template <typename T, int k_steps, int columns, PersistentVariant variant>
__global__ __launch_bounds__(threads, 1) void counted_lstm_kernel(const __grid_constant__ Arguments arguments) {
    constexpr bool waits = variant != PersistentVariant::no_wait;
    constexpr int quarter = k_steps * depth * columns;  // elements of h
    constexpr int slots = counted_slots;
    constexpr int cells = columns * units > threads ? columns * units / threads : 1;  // per thread
    constexpr int columns_at_once = threads / units;
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ CopyBarrier copied[warpgroups];
    auto* const h_shared = reinterpret_cast<std::uint16_t*>(memory);
    auto* const sums = reinterpret_cast<float*>(memory + warpgroups * quarter * 2);

    const int hidden = arguments.hidden, batch = arguments.batch, row_batch = arguments.row_batch;
    const int blocks = hidden / units;
    const int direction = arguments.first_direction + static_cast<int>(blockIdx.x) / blocks;
    const int block = static_cast<int>(blockIdx.x) % blocks;
    const bool reverse = direction == 1;
    const PersistentDirection& operands = arguments.directions[direction];
    const int thread = static_cast<int>(threadIdx.x);
    const int warpgroup = __shfl_sync(0xffffffff, thread / warpgroup_threads, 0);  // broadcast: a warp-uniform value
    const int in_warpgroup = thread % warpgroup_threads;
    const int warp = in_warpgroup / 32, lane = thread % 32;

    // Sequences end at hidden, so the last quarters may be shorter or empty. Zeros take part in their products, and
    // stand for h before the first step.
    for (int i = thread; i < warpgroups * quarter / 8; i += threads)
        reinterpret_cast<uint4*>(h_shared)[i] = make_uint4(0, 0, 0, 0);
    if (thread == 0)
        for (CopyBarrier& barrier : copied) barrier.init();
    fence_async();
    __syncthreads();

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

    // The cells of this thread: one unit of up to two sequences.
    const int unit = thread % units, first_column = thread / units;
    const bool has_cell = first_column < columns;  // true for whole warps
    const int global_unit = block * units + unit;
    int length[cells], last = 0;
    float c[cells], bias[4];
#pragma unroll
    for (int i = 0; i < cells; ++i) {
        length[i] = 0;
        c[i] = 0;
    }
    for (int n = 0; n < batch; ++n) {
        const auto steps = static_cast<int>(
            steps_of(arguments.lengths[n], arguments.frames_per_step, static_cast<std::int64_t>(arguments.steps)));
        last = max(last, steps);
#pragma unroll
        for (int i = 0; i < cells; ++i)
            if (n == first_column + i * columns_at_once) length[i] = steps;
    }
#pragma unroll
    for (int g = 0; g < 4; ++g) {
        const int at = g * hidden + global_unit;
        bias[g] = widened<T>(static_cast<const std::uint16_t*>(operands.bias_ih)[at]) +
                  widened<T>(static_cast<const std::uint16_t*>(operands.bias_hh)[at]);
    }

    // The blocks that produce this warpgroup's quarter, and how much they produce.
    const int producers = max(0, min(k_steps, blocks - warpgroup * k_steps));
    const std::size_t slot_bytes = static_cast<std::size_t>(hidden) * columns * 2;
    unsigned char* const h_global = arguments.h[direction];
    std::uint16_t* const h_quarter = h_shared + warpgroup * quarter;
    const unsigned h_address = shared_address(h_quarter);
    const auto counter_of = [&](int of) {
        return arguments.counters + (direction * warpgroups + of) * (counter_bytes / 4);
    };

    PhaseClock<variant == PersistentVariant::clocks> clock;
    clock.start();
#pragma unroll 1
    for (int step = 0; step < last; ++step) {
        // The input's contribution to the gates, loaded a microsecond before it is needed.
        std::uint16_t x[cells][4];
#pragma unroll
        for (int i = 0; i < cells; ++i) {
            const int column = first_column + i * columns_at_once;
            const int t = reverse ? length[i] - 1 - step : step;
            const auto* row = static_cast<const std::uint16_t*>(operands.gates_x) +
                              (static_cast<std::int64_t>(t) * row_batch + column) * (4 * hidden) + global_unit;
#pragma unroll
            for (int g = 0; g < 4; ++g)
                x[i][g] = variant != PersistentVariant::no_gates && step < length[i] ? load_once(row + g * hidden) : 0;
        }

        if (step > 0 && producers > 0) {
            const unsigned char* from = h_global + (step - 1) % slots * slot_bytes + warpgroup * quarter * 2;
            if (in_warpgroup == 0) {
                const std::uint32_t* counter = counter_of(warpgroup);
                const auto all = static_cast<std::uint32_t>(producers * step);
                Patience patience;
                if constexpr (waits)
                    while (acquire(counter) < all) patience.wait();
                clock.end(PersistentPhase::wait);
                fence_async();
                copied[warpgroup].copy(h_quarter, from, static_cast<unsigned>(producers * units * columns * 2));
            }
            Patience patience;
            while (!copied[warpgroup].is_past(static_cast<unsigned>(step - 1) % 2)) patience.wait();
        }
        clock.end(PersistentPhase::load);

        float d[columns / 2];
        if constexpr (variant == PersistentVariant::no_product) {
#pragma unroll
            for (float& sum : d) sum = 0;
        } else {
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

        float* const own = sums + warpgroup * columns * sums_stride;
#pragma unroll
        for (int i = 0; i < columns / 2; ++i) own[sum_offset(warp * 16 + sum_row(lane, i), sum_column(lane, i))] = d[i];
        __syncthreads();  // after it all of h[step - 1] has been read, and no product reads shared memory any more
        clock.end(PersistentPhase::sums);

        float gates[cells][4];
        if (has_cell) {
#pragma unroll
            for (int i = 0; i < cells; ++i) {
                const int column = first_column + i * columns_at_once;
                float(&gate)[4] = gates[i];
#pragma unroll
                for (int g = 0; g < 4; ++g) gate[g] = widened<T>(x[i][g]) + bias[g];
#pragma unroll
                for (int w = 0; w < warpgroups; ++w) {
                    const float4 part = *reinterpret_cast<const float4*>(sums + w * columns * sums_stride +
                                                                         sum_offset(row_of(unit, 0), column));
                    gate[0] += part.x;
                    gate[1] += part.y;
                    gate[2] += part.z;
                    gate[3] += part.w;
                }
                std::uint32_t h = 0;  // after a sequence's end, and where there is no sequence
                if (step < length[i]) {
                    if constexpr (variant == PersistentVariant::no_cell) {
                        h = rounded<T>(gate[0] + gate[1] + gate[2] + gate[3]);
                    } else {
                        h = rounded<T>(lstm_cell(gate, c[i]));
                    }
                }
                const std::uint32_t pair = h | __shfl_down_sync(0xffffffff, h, 1) << 16;
                const std::size_t at = static_cast<std::size_t>(h_offset(global_unit, column, columns)) * 2;
                if (unit % 2 == 0)
                    store_relaxed(reinterpret_cast<std::uint32_t*>(h_global + step % slots * slot_bytes + at), pair);
                if (column < batch) {
                    const int t = reverse && step < length[i] ? length[i] - 1 - step : step;
                    static_cast<std::uint16_t*>(
                        operands.out)[(static_cast<std::int64_t>(t) * row_batch + column) * hidden + global_unit] =
                        static_cast<std::uint16_t>(h);
                }
            }
        }
        clock.end(PersistentPhase::cell);
        __syncthreads();
        if (thread == 0) release_one(counter_of(block / k_steps));
        clock.end(PersistentPhase::publish);
        if constexpr (variant == PersistentVariant::saves) {
#pragma unroll
            for (int i = 0; i < cells; ++i) {
                const int column = first_column + i * columns_at_once;
                if (!has_cell || column >= batch) continue;
                const bool runs = step < length[i];
                const int t = reverse && runs ? length[i] - 1 - step : step;
                save<T>(operands, static_cast<std::int64_t>(t) * row_batch + column, hidden, global_unit, gates[i],
                        c[i], runs);
            }
        }
    }
    if (thread == 0) clock.write(arguments.clocks + (direction * blocks + block) * persistent_phases);

    // Steps in which every sequence has ended.
    if (has_cell)
        for (int t = last; t < arguments.steps; ++t)
            for (int column = first_column; column < batch; column += columns_at_once) {
                const std::int64_t row = static_cast<std::int64_t>(t) * row_batch + column;
                static_cast<std::uint16_t*>(operands.out)[row * hidden + global_unit] = 0;
                if constexpr (variant == PersistentVariant::saves)
                    save<T>(operands, row, hidden, global_unit, {}, 0, false);
            }
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
