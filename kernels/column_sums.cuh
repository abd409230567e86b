// Sums over the rows of a matrix, with the same bits in every run: each block sums a fixed set of rows, and a second
// kernel adds up the blocks' sums in a fixed order. There is no atomic addition.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/programmatic.cuh"
#include "kernels/types.cuh"

namespace kbench::cuda {

/// Warps per block of add_parts_kernel. There are few, so that a block fits next to those of the kernel before.
inline constexpr int adding_warps = 8;

/// A block adds up 32 columns of `partial` [parts, columns]; each warp takes every eighth row. Column c goes to
/// first[c] or, from `split` on, to second[c - split]; with `accumulates` it is added to what is there. The launch
/// overlaps the end of the kernel that writes `partial`, so nothing may be read early: no pointer is __restrict__.
template <typename T>
__global__ void __launch_bounds__(32 * adding_warps)
    add_parts_kernel(const Arithmetic<T>* partial, int parts, std::int64_t columns, T* first, std::int64_t split,
                     T* second, bool accumulates) {
    using A = Arithmetic<T>;
    constexpr int warp = 32, at_once = 17;  // with 17 loads at once, the 132 parts of an H200 pay L2's latency once
    __shared__ A sums[adding_warps][warp];
    const std::int64_t column = std::int64_t{blockIdx.x} * warp + threadIdx.x;
    wait_for_previous();
    A sum{0};
    if (column < columns) {
        for (int part = static_cast<int>(threadIdx.y); part < parts; part += at_once * adding_warps) {
            A values[at_once];
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                const int each = part + i * adding_warps;
                values[i] = each < parts ? partial[each * columns + column] : A{0};
            }
#pragma unroll
            for (int i = 0; i < at_once; ++i) sum += values[i];
        }
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    for (unsigned half = adding_warps / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half) sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + half][threadIdx.x];
    }
    if (threadIdx.y > 0 || column >= columns) return;
    T* to = column < split ? first + column : second + (column - split);
    sum = sums[0][threadIdx.x];
    if (accumulates) sum += static_cast<A>(*to);
    *to = static_cast<T>(sum);
}

/// Launches add_parts_kernel.
template <typename T>
void add_parts(const Arithmetic<T>* partial, std::int64_t parts, std::int64_t columns, void* first, std::int64_t split,
               void* second, bool accumulates, cudaStream_t stream) {
    launch_behind(add_parts_kernel<T>, dim3(static_cast<unsigned>(divide_up(columns, 32))), dim3(32, adding_warps),
                  stream, partial, static_cast<int>(parts), columns, static_cast<T*>(first), split,
                  static_cast<T*>(second), accumulates);
}

}  // namespace kbench::cuda
