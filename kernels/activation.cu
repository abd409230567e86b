// Activations and their backward, each as a kernel of its own, as an eager framework runs them. Bound by memory. The
// function is a template argument, so that no loop branches on it.
#include "kernels/activation.h"

#include "kernels/activation.cuh"
#include "kernels/elementwise.cuh"

namespace kbench::cuda {
namespace {

/// The derivative of gelu_tanh: s + 2 x u' s (1 - s) with s = 1 / (1 + exp(-2u)). It uses exp(-2|u|), which cannot
/// overflow, because s (1 - s) is even in u. Beyond |x| = 32 even fp64's exponential is 0 and the derivative 0 or 1;
/// clamping x there keeps x^3 finite.
template <Activation f, typename T, typename A>
__device__ A gelu_tanh_slope(A x) {
    constexpr A factor = A(sqrt_2_over_pi(f)), cubic = A{0.044715}, most{32};
    const A v = x > most ? most : x < -most ? -most : x;  // NaN stays NaN
    const A square = cubic * v * v, u = factor * v * (1 + square);
    const A slope = 2 * factor * (1 + 3 * square), argument = u < 0 ? 2 * u : -2 * u;
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

/// s + x v' s (1 - s) with s = 1 / (1 + exp(-v)), again through exp(-|v|), which cannot overflow. v is clamped to where
/// even fp64's exponential is 0.
template <typename T, typename A>
__device__ A sigmoid_slope(A argument) {
    constexpr A most{800};
    const A v = argument > most ? most : argument < -most ? -most : argument;  // NaN stays NaN
    const A e = exponential<T>(v < 0 ? v : -v), reciprocal = quotient<T>(A{1}, 1 + e), rest = e * reciprocal;
    return (v < 0 ? rest : reciprocal) + v * rest * reciprocal;
}

template <Activation f, typename T, typename A>
__device__ A slope(A x) {
    if constexpr (f == Activation::gelu_tanh || f == Activation::gelu_fast) {
        return gelu_tanh_slope<f, T>(x);
    } else if constexpr (f == Activation::gelu_erf) {
        constexpr A most{64};  // even fp64's density is 0 beyond this; clamping keeps x finite
        const A v = x > most ? most : x < -most ? -most : x;
        return normal_below(v) + v * (A{0.39894228040143267794} * exponential<T>(A{-0.5} * v * v));
    } else if constexpr (f == Activation::quick_gelu) {
        return sigmoid_slope<T>(A{1.702} * x);
    } else if constexpr (f == Activation::relu) {
        return x <= 0 ? A{0} : A{1};
    } else if constexpr (f == Activation::silu) {
        return sigmoid_slope<T>(x);
    } else {
        static_assert(f == Activation::tanh);
        const A e = exponential<T>(x < 0 ? 2 * x : -2 * x), reciprocal = quotient<T>(A{1}, 1 + e);
        return 4 * e * reciprocal * reciprocal;
    }
}

template <Activation f>
struct Activated {
    template <typename T>
    static __device__ Arithmetic<T> of(Arithmetic<T> x) {
        return activated<f, T>(x);
    }
};
template <Activation f>
struct Backward {
    template <typename T>
    struct Of {
        static __device__ Arithmetic<T> of(Arithmetic<T> x, Arithmetic<T> dy) { return dy * slope<f, T>(x); }
    };
};

/// A thread has one vector of a row's halves.
template <typename T, int N>
__global__ void swiglu_kernel(const T* __restrict__ gate_up, T* __restrict__ out, std::int64_t vectors,
                              std::int64_t width) {
    using A = Arithmetic<T>;
    const std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= vectors) return;
    const std::int64_t row = index / (width / N), column = index % (width / N) * N;
    auto gate = Vector<T, N>::load_once(gate_up + row * 2 * width + column);
    const auto up = Vector<T, N>::load_once(gate_up + (row * 2 + 1) * width + column);
#pragma unroll
    for (int i = 0; i < N; ++i)
        gate.elements[i] = static_cast<T>(activated<Activation::silu, T>(static_cast<A>(gate.elements[i])) *
                                          static_cast<A>(up.elements[i]));
    gate.store(out + row * width + column);
}

}  // namespace

void bias_activation_forward(DataType type, Activation function, std::int64_t rows, std::int64_t width, In<"x"> x,
                             In<"bias?"> bias, Out<"out"> out, cudaStream_t stream) {
    with_activation(function,
                    [&]<Activation f>() { launch_bias<Activated<f>>(type, x, bias, out, rows, width, stream); });
}

void activation_backward(DataType type, Activation function, std::int64_t count, In<"x"> x, In<"dy"> dy, Out<"dx"> dx,
                         cudaStream_t stream) {
    with_activation(function,
                    [&]<Activation f>() { launch_pairs<Backward<f>::template Of>(type, x, dy, dx, count, stream); });
}

void swiglu_forward(DataType type, const SwiGlu& op, In<"gate_up"> gate_up, Out<"out"> out, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        dispatch_vector<vector_width<T>>(op.width, {gate_up.data(), out.data()}, [&]<int N>() {
            const std::int64_t vectors = op.rows * (op.width / N);
            swiglu_kernel<T, N>
                <<<static_cast<unsigned>(divide_up(vectors, threads_per_block)), threads_per_block, 0, stream>>>(
                    gate_up, out, vectors, op.width);
        });
    });
    KBENCH_CUDA_LAUNCHED("swiglu_kernel");
}

}  // namespace kbench::cuda
