// Activations as branch-free scalar functions for vectorised loops (cpu/vector.h), and loops over arrays that use them.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>

#include "cpu/vector.h"
#include "kbench/activation.h"
#include "kbench/operand.h"
#include "models/ops/swiglu.h"

namespace kbench::cpu {

/// out = function(x + bias). Bias may be null, the function may be missing, and out may be x. Matrices
/// [rows, width], bias [width].
void bias_activation(DataType type, std::int64_t rows, std::int64_t width, In<"x"> x, In<"bias?"> bias,
                     std::optional<Activation> function, Out<"out"> out);
/// dx = dy times the function's derivative at x; dx may be dy or x.
void activation_gradient(DataType type, Activation function, std::int64_t count, In<"x"> x, In<"dy"> dy, Out<"dx"> dx);

/// out[r, c] = silu(gate_up[r, c]) * gate_up[r, width + c]; out must not overlap gate_up.
void swiglu(DataType type, const SwiGlu& op, In<"gate_up"> gate_up, Out<"out"> out);

/// e^(-x).
template <class T>
inline T exp_of_minus(T x) {
    return exp2_vector(-log2_e<T> * x);
}

/// (a + 4) Phi(-a) e^(a^2 / 2) for a from 0 to infinity, as a polynomial in t = (a - 4) / (a + 4), constant first. It
/// is the Chebyshev series, computed in 60 digits and cut where the rest is below 1e-9 and 1e-17 of it. The form is
/// from Shepherd and Laframboise (Math. Comp. 36(153), 1981); it is smooth at both ends.
inline constexpr double tail_of_phi_fp64[] = {
    0.75528513041575149205,    -0.60789664197189229963,    0.38713740074221491834,    -0.18652185795963661796,
    0.060396574890917827853,   -0.0075401889673861514261,  -0.0034796923670470918396, 0.0016308184674078553505,
    0.00013334430940282777704, -0.00023109501734830925356, -1.908246297388885911e-6,  0.000035145111840840594695,
    7.1665855941663256285e-7,  -5.9216108759301197443e-6,  -6.2983622501452739631e-7, 1.024784797174186096e-6,
    2.7246212836134535014e-7,  -1.5977360696934238525e-7,  -8.6865554309936782958e-8, 1.7844669428361432134e-8,
    2.1426973091245793737e-8,  -5.8725563008178680418e-10, -3.7303961241141114886e-9, -1.1999705812174028955e-10,
    3.4028833440336909892e-10};
inline constexpr float tail_of_phi_fp32[] = {0.7552851304f,    -0.6078966314f,    0.387137402f,     -0.1865221598f,
                                             0.0603965535f,    -0.00753771716f,   -0.003479550269f, 0.001622040106f,
                                             0.0001328735335f, -0.0002155737763f, -1.037879134e-6f, 2.118298426e-5f,
                                             -2.310677224e-7f};

/// Phi(x), the normal distribution function, and its density at x.
template <class T>
struct Normal {
    T below, density;
};
template <class T>
inline Normal<T> normal_at(T x) {
    constexpr auto& series = []() -> auto& {
        if constexpr (std::is_same_v<T, double>)
            return tail_of_phi_fp64;
        else
            return tail_of_phi_fp32;
    }
    ();
    constexpr std::size_t degree = std::size(series) - 1;
    const T a = std::abs(x), e = exp_of_minus(T(0.5) * a * a), reciprocal = T(1) / (a + T(4));
    const T t = (a - T(4)) * reciprocal;
    const T sum = [&]<std::size_t... i>(std::index_sequence<i...>) {
        T horner = series[degree];
        ((horner = horner * t + series[degree - 1 - i]), ...);
        return horner;
    }
    (std::make_index_sequence<degree>{});
    const T beyond = e * (reciprocal * sum);
    return {x < T(0) ? beyond : T(1) - beyond, T(0.398942280401432677939946059934381868) * e};
}

/// e^(-x) - 1 for x from 0 to infinity, without cancellation at 0: like exp2_vector, without the series' 1.
template <class T>
inline T exp_of_minus_less_one(T x) {
    constexpr int degree = std::is_same_v<T, double> ? 13 : 7;
    constexpr auto coefficient = [](std::size_t n) {
        double product = 1;
        for (std::size_t f = 1; f <= n; ++f) product *= 0.693147180559945309417232121458176568 / static_cast<double>(f);
        return T(product);
    };
    using Bits = std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t>;
    constexpr int mantissa_bits = std::is_same_v<T, double> ? 52 : 23;
    constexpr T round_to_integer = T(1.5) * T(Bits(1) << mantissa_bits);
    const T power = larger(exp2_lowest<T>, -log2_e<T> * x);
    const T shifted = power + round_to_integer, rest = power - (shifted - round_to_integer);
    const T series = [ rest, coefficient ]<std::size_t... i>(std::index_sequence<i...>) {
        T sum = coefficient(degree);
        ((sum = sum * rest + coefficient(degree - 1 - i)), ...);
        return sum * rest;
    }
    (std::make_index_sequence<degree - 1>{});
    const T scale = std::bit_cast<T>(std::bit_cast<Bits>(T(1)) + (std::bit_cast<Bits>(shifted) << mantissa_bits));
    return scale * series + (scale - T(1));
}

/// f(x). NaN stays NaN.
template <Activation f, class T>
inline T activated_vector(T x) {
    if constexpr (f == Activation::gelu_tanh || f == Activation::gelu_fast) {
        const T u = T(sqrt_2_over_pi(f)) * (x + T(0.044715) * x * x * x);
        return x / (T(1) + exp2_vector(T(-2) * log2_e<T> * u));
    } else if constexpr (f == Activation::gelu_erf) {
        return x * normal_at(x).below;
    } else if constexpr (f == Activation::quick_gelu) {
        return x / (T(1) + exp_of_minus(T(1.702) * x));
    } else if constexpr (f == Activation::relu) {
        return x < T(0) ? T(0) : x;
    } else if constexpr (f == Activation::silu) {
        return x / (T(1) + exp_of_minus(x));
    } else {
        static_assert(f == Activation::tanh);
        const T less_one = exp_of_minus_less_one(T(2) * std::abs(x));
        return std::copysign(less_one / (T(2) + less_one), x);
    }
}

/// s(v) + x v' s (1 - s) with s = 1 / (1 + e^(-v)). Its terms cancel only at its zero.
template <class T>
inline T sigmoid_slope_vector(T v, T x_dv) {
    const T e = exp_of_minus(v), s = T(1) / (T(1) + e);
    return s + x_dv * s * (e * s);
}

/// f'(x).
template <Activation f, class T>
inline T slope_vector(T x) {
    if constexpr (f == Activation::gelu_tanh || f == Activation::gelu_fast) {
        constexpr T factor = T(sqrt_2_over_pi(f));
        const T cubic = T(0.044715) * x * x;
        const T u = factor * x * (T(1) + cubic), e = exp2_vector(T(-2) * log2_e<T> * u), s = T(1) / (T(1) + e);
        return s + T(2) * factor * (T(1) + T(3) * cubic) * (x * s) * (e * s);
    } else if constexpr (f == Activation::gelu_erf) {
        const Normal<T> normal = normal_at(x);
        return normal.below + x * normal.density;
    } else if constexpr (f == Activation::quick_gelu) {
        return sigmoid_slope_vector(T(1.702) * x, T(1.702) * x);
    } else if constexpr (f == Activation::relu) {
        return x <= T(0) ? T(0) : T(1);
    } else if constexpr (f == Activation::silu) {
        return sigmoid_slope_vector(x, x);
    } else {
        static_assert(f == Activation::tanh);
        const T e = exp_of_minus(T(2) * std::abs(x)), reciprocal = T(1) / (T(1) + e);
        return T(4) * e * reciprocal * reciprocal;
    }
}

}  // namespace kbench::cpu
