// Adds up the partial sums of a gradient. Internal to kernels/convolution/.
#pragma once

#include "kernels/types.cuh"

namespace kbench::cuda::convolution {

/// A block adds up the parts of `add_elements` sums. There are few sums but hundreds of parts: one thread per sum would
/// wait for its parts one after another, on a device that is nearly empty.
inline constexpr int add_threads = 256, add_elements = 32, add_shares = add_threads / add_elements;

/// The sum over parts[part * stride + i], in an order that is the same on all devices; 0 where `exists` is false. All
/// threads of a block must call it. Those with the same threadIdx.x % add_elements share an i, and all get its sum.
template <class A>
__device__ A sum_of_parts(const A* __restrict__ parts, int count, std::int64_t stride, std::int64_t i, bool exists) {
    __shared__ A sums[add_shares][add_elements];
    const int share = static_cast<int>(threadIdx.x) / add_elements,
              column = static_cast<int>(threadIdx.x) % add_elements;
    A sum = 0;
    if (exists) {
#pragma unroll 8
        for (int part = share; part < count; part += add_shares) sum += parts[part * stride + i];
    }
    sums[share][column] = sum;
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int other = 0; other < add_shares; ++other) sum += sums[other][column];
    return sum;
}

}  // namespace kbench::cuda::convolution
