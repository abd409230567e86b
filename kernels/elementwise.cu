// Bias, GELU with its backward, and residual, each on its own as an eager framework runs them. All are bound by memory.
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

/// Its derivative: s + 2 x u' s (1 - s) with s = 1 / (1 + exp(-2u)). exp(-2|u|) does not overflow; s (1 - s) is the
/// same on both sides of 0. Beyond 32 the exponential is 0 in fp64, too, and the derivative 0 or 1: held there, x^3 is
/// finite.
template <typename T, typename A>
__device__ A gelu_slope(A x) {
    constexpr A sqrt_2_over_pi = A{0.7978845608028653559}, cubic = A{0.044715}, most{32};
    const A v = x > most ? most : x < -most ? -most : x;  // NaN stays NaN
    const A square = cubic * v * v, u = sqrt_2_over_pi * v * (1 + square);
    const A slope = 2 * sqrt_2_over_pi * (1 + 3 * square), argument = u < 0 ? 2 * u : -2 * u;
    A e, reciprocal;
    if constexpr (sizeof(T) == 2) {
        e = __expf(argument);
        reciprocal = __fdividef(A{1}, 1 + e);
    } else {
        e = exp(argument);
        reciprocal = 1 / (1 + e);
    }
    const A rest = e * reciprocal;
    return (u < 0 ? rest : reciprocal) + v * slope * rest * reciprocal;
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

/// What is made of an element each of two arrays.
template <typename T>
struct Sum {
    static __device__ Arithmetic<T> of(Arithmetic<T> x, Arithmetic<T> residual) { return x + residual; }
};
template <typename T>
struct GeluBackward {
    static __device__ Arithmetic<T> of(Arithmetic<T> x, Arithmetic<T> dy) { return dy * gelu_slope<T>(x); }
};

/// One vector a thread; the elements past the last whole vector take one thread each.
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
        constexpr std::int64_t any_width = vector_width<T>;  // the kernel takes care of the tail
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
    launch_pairs<Sum>(type, x, residual, out, count, stream);
}

void gelu_backward(DataType type, const void* x, const void* dy, void* dx, std::int64_t count, cudaStream_t stream) {
    launch_pairs<GeluBackward>(type, x, dy, dx, count, stream);
}

}  // namespace kbench::cuda
