// The activations of one element, for kernels that apply them to what they have in registers.
#pragma once

#include "kbench/activation.h"
#include "kernels/types.cuh"

namespace kbench::cuda {

/// Fast intrinsics err by a few units of fp32, which vanish when elements are stored in 16 bits.
template <typename T, typename A>
__device__ A exponential(A x) {
    if constexpr (sizeof(T) == 2)
        return __expf(x);
    else
        return exp(x);
}
template <typename T, typename A>
__device__ A quotient(A x, A y) {
    if constexpr (sizeof(T) == 2)
        return __fdividef(x, y);
    else
        return x / y;
}

/// GELU's tanh form for an element stored as T. 0.5 (1 + tanh u) is written as 1 / (1 + exp(-2u)): one exponential
/// and no cancellation, so that it stays accurate where tanh is near -1.
template <Activation f, typename T, typename A>
__device__ A gelu_tanh(A x) {
    constexpr A factor = A(sqrt_2_over_pi(f)), cubic = A{0.044715};
    const A u = factor * (x + cubic * x * x * x);
    if constexpr (sizeof(T) == 2)  // their errors of a few fp32 units vanish in 16 bits
        return __fdividef(x, 1 + __expf(-2 * u));
    else
        return x / (1 + exp(-2 * u));
}

/// Phi(x), the normal distribution function, with full relative precision in A however small it is.
template <typename A>
__device__ A normal_below(A x) {
    return A{0.5} * erfc(A{-0.70710678118654752440} * x);
}

/// x Phi(x). In 16 bits it uses erf, which is faster and errs by units of x; 16 bits cannot show such an error.
template <typename T, typename A>
__device__ A gelu_erf(A x) {
    if constexpr (sizeof(T) == 2)
        return x * (A{0.5} + A{0.5} * erf(A{0.70710678118654752440} * x));
    else
        return x * normal_below(x);
}

template <Activation f, typename T, typename A>
__device__ A activated(A x) {
    if constexpr (f == Activation::gelu_tanh || f == Activation::gelu_fast) {
        return gelu_tanh<f, T>(x);
    } else if constexpr (f == Activation::gelu_erf) {
        return gelu_erf<T>(x);
    } else if constexpr (f == Activation::quick_gelu) {
        return quotient<T>(x, 1 + exponential<T>(A{-1.702} * x));
    } else if constexpr (f == Activation::relu) {
        return x < 0 ? A{0} : x;
    } else if constexpr (f == Activation::silu) {
        return quotient<T>(x, 1 + exponential<T>(-x));
    } else {
        static_assert(f == Activation::tanh);
        return tanh(x);
    }
}

}  // namespace kbench::cuda
