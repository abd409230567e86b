// Sums over the rows of a matrix that have the same bits on every run: blocks add up rows of their own, always the same
// ones, and a second kernel adds up what they found, in a fixed order. No atomic addition.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/check.h"
#include "kernels/types.cuh"

namespace kbench::cuda {

/// A block adds up 32 columns of `partial` [parts, columns], a warp every 32nd row of them. Column c goes to first[c],
/// or, from `split` on, to second[c - split]; with `accumulates` it is added to what is there.
template <typename T>
__global__ void __launch_bounds__(1024)
    add_parts_kernel(const Arithmetic<T>* __restrict__ partial, int parts, std::int64_t columns, T* __restrict__ first,
                     std::int64_t split, T* __restrict__ second, bool accumulates) {
    using A = Arithmetic<T>;
    constexpr int warp = 32;
    __shared__ A sums[warp][warp];
    const std::int64_t column = std::int64_t{blockIdx.x} * warp + threadIdx.x;
    A sum{0};
    if (column < columns) {
#pragma unroll 4
        for (int part = static_cast<int>(threadIdx.y); part < parts; part += warp)
            sum += partial[part * columns + column];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    for (unsigned half = warp / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half) sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + half][threadIdx.x];
    }
    if (threadIdx.y > 0 || column >= columns) return;
    T* to = column < split ? first + column : second + (column - split);
    sum = sums[0][threadIdx.x];
    if (accumulates) sum += static_cast<A>(*to);
    *to = static_cast<T>(sum);
}

/// Launches it.
template <typename T>
void add_parts(const Arithmetic<T>* partial, std::int64_t parts, std::int64_t columns, void* first, std::int64_t split,
               void* second, bool accumulates, cudaStream_t stream) {
    add_parts_kernel<T><<<static_cast<unsigned>(divide_up(columns, 32)), dim3(32, 32), 0, stream>>>(
        partial, static_cast<int>(parts), columns, static_cast<T*>(first), split, static_cast<T*>(second), accumulates);
    KBENCH_CUDA_LAUNCHED("add_parts_kernel");
}

}  // namespace kbench::cuda
