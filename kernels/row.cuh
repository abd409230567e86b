// How kernels that reduce over rows map threads to rows, and the reductions themselves.
// A row belongs to one warp (several rows in a block, no barriers) or to one whole block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/types.cuh"

namespace kbench::cuda {

/// blockDim.x threads share a row, blockDim.y rows share a block (1 unless blockDim.x is a warp).
struct RowShape {
    dim3 grid, block;
    int vectors_per_thread;  ///< a power of two
};

/// Limits on how a kernel's rows are laid out.
struct RowLimits {
    int ideal_vectors;  ///< per thread; powers of two
    int most_vectors;
    int most_threads;  ///< per block
};

/// The shape for `rows` rows of `vectors` vectors each. A row gets one warp while the ideal number of vectors suffices,
/// else a block. The block has up to 512 threads before a thread takes more vectors than is ideal. vectors_per_thread
/// is 0 for a row that exceeds the limits.
inline RowShape row_shape(std::int64_t rows, std::int64_t vectors, const RowLimits& limits) {
    constexpr int warp = 32, rows_per_block = 4, good_threads = 512;
    if (vectors <= std::int64_t{warp} * limits.ideal_vectors) {
        int per_thread = 1;
        while (std::int64_t{per_thread} * warp < vectors) per_thread *= 2;
        return {dim3(static_cast<unsigned>(divide_up(rows, rows_per_block))), dim3(warp, rows_per_block), per_thread};
    }
    int per_thread = limits.ideal_vectors;
    while (per_thread < limits.most_vectors && divide_up(vectors, per_thread) > good_threads) per_thread *= 2;
    const std::int64_t threads = divide_up(divide_up(vectors, per_thread), warp) * warp;
    if (threads > limits.most_threads) per_thread = 0;
    return {dim3(static_cast<unsigned>(rows)), dim3(static_cast<unsigned>(threads)), per_thread};
}

/// Calls `function.operator()<n>()` for n = `value`, a power of two up to `most`.
template <int most, typename Function>
void dispatch_power_of_two(int value, Function&& function) {
    if constexpr (most > 1) {
        if (value < most) return dispatch_power_of_two<most / 2>(value, function);
    }
    function.template operator()<most>();
}

/// Combines `value` over the threads that share a row; all of them get the result. `scratch` holds 32 elements, used
/// only when the row has a whole block, and must not be reused by the next reduction.
template <typename A, typename Combine>
__device__ A reduce_row(A value, A identity, Combine combine, A* scratch) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    if (blockDim.x == 32) return value;
    const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
    if (lane == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = lane < warps ? scratch[lane] : identity;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    return value;
}

template <typename A>
__device__ A sum_row(A value, A* scratch) {
    return reduce_row(
        value, A{0}, [](A a, A b) { return a + b; }, scratch);
}

}  // namespace kbench::cuda
