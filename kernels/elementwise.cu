// Bias, GELU and residual, each on its own as an eager framework runs them. All are bound by memory.
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/check.h"
#include "kernels/elementwise.h"
#include "kernels/types.cuh"

namespace kbench::cuda {
namespace {

constexpr int threads_per_block = 256;

/// GELU, tanh form, of an element stored as T, written with 0.5 (1 + tanh u) = 1 / (1 + exp(-2u)): one exponential and
/// no cancellation, so that it stays accurate where tanh is near -1.
template <typename T, typename A>
__device__ A gelu(A x) {
    constexpr A sqrt_2_over_pi = A{0.7978845608028653559}, cubic = A{0.044715};
    const A u = sqrt_2_over_pi * (x + cubic * x * x * x);
    if constexpr (sizeof(T) == 2)  // the fast forms' few units of fp32 vanish in 16 bits
        return __fdividef(x, 1 + __expf(-2 * u));
    else
        return x / (1 + exp(-2 * u));
}

/// out[r, c] = f(x[r, c] + bias[c]). A thread keeps to its columns, so it loads the bias once for all of its rows.
/// x and out may be the same.
template <typename T, int N, bool with_gelu>
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
            vector.elements[i] = static_cast<T>(with_gelu ? gelu<T>(sum) : sum);
        }
        vector.store(out + row * width + column);
    }
}

template <bool with_gelu>
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
            bias_kernel<T, N, with_gelu><<<grid, block, 0, stream>>>(
                static_cast<const T*>(x), static_cast<const T*>(bias), static_cast<T*>(out), rows, width);
        });
    });
    KBENCH_CUDA_LAUNCHED("bias_kernel");
}

/// One vector a thread; the elements past the last whole vector take one thread each.
/// out may be x or residual.
template <typename T, int N>
__global__ void residual_add_kernel(const T* x, const T* residual, T* out, std::int64_t count) {
    using A = Arithmetic<T>;
    const std::int64_t vectors = count / N;
    const std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index < vectors) {
        auto sum = Vector<T, N>::load(x + index * N);
        const auto addend = Vector<T, N>::load(residual + index * N);
#pragma unroll
        for (int i = 0; i < N; ++i)
            sum.elements[i] = static_cast<T>(static_cast<A>(sum.elements[i]) + static_cast<A>(addend.elements[i]));
        sum.store(out + index * N);
    } else if (const std::int64_t tail = vectors * N + (index - vectors); tail < count) {
        out[tail] = static_cast<T>(static_cast<A>(x[tail]) + static_cast<A>(residual[tail]));
    }
}

}  // namespace

void bias_add_forward(DataType type, const void* x, const void* bias, void* out, std::int64_t rows, std::int64_t width,
                      cudaStream_t stream) {
    launch_bias<false>(type, x, bias, out, rows, width, stream);
}

void bias_gelu_forward(DataType type, const void* x, const void* bias, void* out, std::int64_t rows, std::int64_t width,
                       cudaStream_t stream) {
    launch_bias<true>(type, x, bias, out, rows, width, stream);
}

void residual_add_forward(DataType type, const void* x, const void* residual, void* out, std::int64_t count,
                          cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        constexpr std::int64_t any_width = vector_width<T>;  // the kernel takes care of the tail
        dispatch_vector<vector_width<T>>(any_width, {x, residual, out}, [&]<int N>() {
            const std::int64_t work = count / N + count % N;
            residual_add_kernel<T, N>
                <<<static_cast<unsigned>(divide_up(work, threads_per_block)), threads_per_block, 0, stream>>>(
                    static_cast<const T*>(x), static_cast<const T*>(residual), static_cast<T*>(out), count);
        });
    });
    KBENCH_CUDA_LAUNCHED("residual_add_kernel");
}

}  // namespace kbench::cuda
