// Kernels that pass once over rows with a bias, or over two arrays, and apply any function to an element.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/check.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

constexpr int threads_per_block = 256;

/// out[r, c] = f(x[r, c] + bias[c]). A thread keeps to its columns, so it loads the bias once for all its rows.
/// x and out may be the same.
template <typename T, int N, typename Function>
__global__ void bias_kernel(const T* x, const T* __restrict__ bias, T* out, std::int64_t rows, std::int64_t width) {
    using A = Arithmetic<T>;
    const std::int64_t column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
    if (column >= width) return;
    A addend[N] = {};
    if (bias) {
        const auto loaded = Vector<T, N>::load(bias + column);
#pragma unroll
        for (int i = 0; i < N; ++i) addend[i] = static_cast<A>(loaded.elements[i]);
    }
    for (std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < rows;
         row += std::int64_t{gridDim.y} * blockDim.y) {
        auto vector = Vector<T, N>::load(x + row * width + column);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const A sum = static_cast<A>(vector.elements[i]) + addend[i];
            vector.elements[i] = static_cast<T>(Function::template of<T>(sum));
        }
        vector.store(out + row * width + column);
    }
}

template <typename Function>
void launch_bias(DataType type, const void* x, const void* bias, void* out, std::int64_t rows, std::int64_t width,
                 cudaStream_t stream) {
    constexpr std::int64_t most_blocks_y = 65535;  // CUDA C++ Programming Guide, technical specifications
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(width, {x, bias, out}, [&]<int N>() {
            const std::int64_t vectors = divide_up(width, N);
            const auto columns = std::min<std::int64_t>(threads_per_block, divide_up(vectors, 32) * 32);
            const dim3 block(static_cast<unsigned>(columns), static_cast<unsigned>(threads_per_block / columns));
            const dim3 grid(static_cast<unsigned>(divide_up(vectors, columns)),
                            static_cast<unsigned>(std::min(most_blocks_y, divide_up(rows, block.y))));
            bias_kernel<T, N, Function><<<grid, block, 0, stream>>>(
                static_cast<const T*>(x), static_cast<const T*>(bias), static_cast<T*>(out), rows, width);
        });
    });
    KBENCH_CUDA_LAUNCHED("bias_kernel");
}

/// One vector per thread; each element past the last whole vector takes a thread of its own.
/// out may be a or b.
template <typename T, int N, typename Function>
__global__ void pairs_kernel(const T* a, const T* b, T* out, std::int64_t count) {
    using A = Arithmetic<T>;
    const std::int64_t vectors = count / N;
    const std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index < vectors) {
        auto made = Vector<T, N>::load(a + index * N);
        const auto other = Vector<T, N>::load(b + index * N);
#pragma unroll
        for (int i = 0; i < N; ++i)
            made.elements[i] =
                static_cast<T>(Function::of(static_cast<A>(made.elements[i]), static_cast<A>(other.elements[i])));
        made.store(out + index * N);
    } else if (const std::int64_t tail = vectors * N + (index - vectors); tail < count) {
        out[tail] = static_cast<T>(Function::of(static_cast<A>(a[tail]), static_cast<A>(b[tail])));
    }
}

template <template <typename> typename Function>
void launch_pairs(DataType type, const void* a, const void* b, void* out, std::int64_t count, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        constexpr std::int64_t any_width = vector_width<T>;  // the kernel handles the tail
        dispatch_vector<vector_width<T>>(any_width, {a, b, out}, [&]<int N>() {
            const std::int64_t work = count / N + count % N;
            pairs_kernel<T, N, Function<T>>
                <<<static_cast<unsigned>(divide_up(work, threads_per_block)), threads_per_block, 0, stream>>>(
                    static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out), count);
        });
    });
    KBENCH_CUDA_LAUNCHED("pairs_kernel");
}

}  // namespace
}  // namespace kbench::cuda
