// Stages that both persistent LSTM kernels have: a thread finds its place, keeps its weights in registers, multiplies
// them with h, and turns the sums of all warpgroups into c and h. Compiled for sm_90a only (CMakeLists.txt).
#pragma once

#include "kernels/recurrent/persistent/device.cuh"

namespace kbench::cuda::persistent {

/// Where a thread stands in its direction and block, with the sizes that it needs. They are read once, here: the
/// compiler would read arguments again after each asm statement that clobbers memory.
struct Thread {
    const Arguments& arguments;
    const int hidden = arguments.hidden, batch = arguments.batch, row_batch = arguments.row_batch;
    const int blocks = hidden / units, tiles = arguments.tiles;
    const int direction = arguments.first_direction + static_cast<int>(blockIdx.x) / blocks;
    const int block = static_cast<int>(blockIdx.x) % blocks;  ///< in the direction
    const bool reverse = direction == 1;
    const PersistentDirection& operands = arguments.directions[direction];
    const int index = static_cast<int>(threadIdx.x);
    // Broadcast from lane 0, so that the compiler sees a warp-uniform value and builds each descriptor once per warp.
    const int warpgroup = __shfl_sync(0xffffffff, index / warpgroup_threads, 0);
    const int in_warpgroup = index % warpgroup_threads, warp = in_warpgroup / 32, lane = index % 32;

    __forceinline__ __device__ explicit Thread(const Arguments& launched) : arguments(launched) {}
};

/// The number of sequence n's steps.
__forceinline__ __device__ int length_of(const Arguments& arguments, int n) {
    return static_cast<int>(
        steps_of(arguments.lengths[n], arguments.frames_per_step, static_cast<std::int64_t>(arguments.steps)));
}

/// The sum of both biases of a row of weight_hh.
template <typename T>
__forceinline__ __device__ float bias_of(const PersistentDirection& operands, int row) {
    return widened<T>(static_cast<const std::uint16_t*>(operands.bias_ih)[row]) +
           widened<T>(static_cast<const std::uint16_t*>(operands.bias_hh)[row]);
}

/// Fills h in shared memory with zeros. They take part in products, as sequences end at hidden and the last quarters
/// may be shorter or empty, and stand for h before the first step.
__forceinline__ __device__ void clear_h(std::uint16_t* h, int elements, const Thread& me) {
    for (int i = me.index; i < elements / 8; i += threads) reinterpret_cast<uint4*>(h)[i] = make_uint4(0, 0, 0, 0);
}

/// Loads this thread's fragments of the weights, kept for all steps.
template <int k_steps>
__forceinline__ __device__ void load_weights(std::uint32_t (&a)[k_steps][4], const Thread& me) {
    const auto* weight = static_cast<const std::uint16_t*>(me.operands.weight_hh);
#pragma unroll
    for (int s = 0; s < k_steps; ++s)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = me.warp * 16 + fragment_row(me.lane, i);
            const int k = (me.warpgroup * k_steps + s) * depth + fragment_column(me.lane, i);
            const std::int64_t at =
                (static_cast<std::int64_t>(gate_of(row)) * me.hidden + me.block * units + unit_of(row)) * me.hidden + k;
            a[s][i] = k < me.hidden ? *reinterpret_cast<const std::uint32_t*>(weight + at) : 0;
        }
}

/// The number of blocks that produce this warpgroup's quarter of h.
template <int k_steps>
__forceinline__ __device__ int producers_of_quarter(const Thread& me) {
    return max(0, min(k_steps, me.blocks - me.warpgroup * k_steps));
}

/// Computes d, the product of the warpgroup's weights and its quarter of h, which begins at address `h` of shared
/// memory.
template <typename T, int k_steps, int columns, PersistentVariant variant>
__forceinline__ __device__ void multiply_quarter(float (&d)[columns / 2], const std::uint32_t (&a)[k_steps][4],
                                                 unsigned h) {
    if constexpr (variant == PersistentVariant::no_product) {
#pragma unroll
        for (float& sum : d) sum = 0;
    } else {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int s = 0; s < k_steps; ++s) {
            const std::uint64_t at = descriptor(h + s * 2 * leading_bytes(columns), columns);
            if (s == 0)
                multiply<T, columns, 0>(d, a[s], at);
            else
                multiply<T, columns, 1>(d, a[s], at);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        // Keeps reads of d behind the wait, which names no register.
#pragma unroll
        for (float& sum : d) asm volatile("" : "+f"(sum)::"memory");
    }
}

/// Begins a cell's gates with what the input and the biases contribute.
template <typename T>
__forceinline__ __device__ void begin_gates(float (&gate)[4], const std::uint16_t (&x)[4], const float (&bias)[4]) {
#pragma unroll
    for (int g = 0; g < 4; ++g) gate[g] = widened<T>(x[g]) + bias[g];
}

/// Adds the products of all warpgroups to a cell's gates. `sums` points to the cell's in the first warpgroup's.
template <int columns>
__forceinline__ __device__ void add_sums(float (&gate)[4], const float* sums) {
#pragma unroll
    for (int w = 0; w < warpgroups; ++w) {
        const float4 part = *reinterpret_cast<const float4*>(sums + w * columns * sums_stride);
        gate[0] += part.x;
        gate[1] += part.y;
        gate[2] += part.z;
        gate[3] += part.w;
    }
}

/// Returns the bits of a cell's h and updates its c.
template <typename T, PersistentVariant variant>
__forceinline__ __device__ std::uint32_t step_cell(const float (&gate)[4], float& c) {
    if constexpr (variant == PersistentVariant::no_cell)
        return rounded<T>(gate[0] + gate[1] + gate[2] + gate[3]);
    else
        return rounded<T>(lstm_cell(gate, c));
}

/// A word of h: this lane's unit, and the next unit, which the next lane has.
__forceinline__ __device__ std::uint32_t with_next_unit(std::uint32_t h) {
    return h | __shfl_down_sync(0xffffffff, h, 1) << 16;
}

/// The time that a sequence computes in a step, also after its end: then it is the step in both directions.
__forceinline__ __device__ int time_of(int step, int length, bool reverse) {
    return reverse && step < length ? length - 1 - step : step;
}

/// Writes the block's clocks, by its first thread.
template <bool present>
__forceinline__ __device__ void write_clock(const PhaseClock<present>& clock, const Thread& me) {
    if (me.index == 0) clock.write(me.arguments.clocks + (me.direction * me.blocks + me.block) * persistent_phases);
}

}  // namespace kbench::cuda::persistent
