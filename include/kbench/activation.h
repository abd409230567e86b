// Activation functions: what they are called and what they cost. Each is an op kind of its own
// (models/ops/activation.h), and products compute them in their epilogues.
//
//     const kbench::ActivationFacts& gelu = kbench::facts_of(kbench::Activation::gelu_erf);  // gelu.forward_flops is 5
//     if (const auto function = kbench::absorbed_activation(step))  // relu for "m1024n5120k1280+bias+relu"
//         kbench::with_activation(*function, [&]<kbench::Activation f>() { store<f>(sums); });
#pragma once

#include <optional>
#include <string_view>

#include "kbench/step.h"

namespace kbench {

/// The functions, as papers call them. Each is a kind of its own, not one kind with a parameter: a step's text,
/// `+bias+relu`, then names the function, and a provider whose epilogue computes one is never handed another.
enum class Activation {
    gelu_tanh,   ///< x s(2u), u = sqrt(2/pi) (x + 0.044715 x^3): GELU's tanh form (Hendrycks and Gimpel, 2016)
    gelu_fast,   ///< the same, with sqrt(2/pi) to ten digits (transformers): differs from it by 1e-12
    gelu_erf,    ///< x Phi(x), Phi(x) = (1 + erf(x / sqrt(2))) / 2: GELU (same paper)
    quick_gelu,  ///< x s(1.702 x): GELU's sigmoid form (same paper)
    relu,        ///< max(x, 0) (Nair and Hinton, 2010)
    silu,        ///< x s(x), also swish (same paper as GELU; Elfwing et al., 2018)
    tanh,
};  // s(v) = 1 / (1 + e^(-v)), so that s(2u) = (1 + tanh(u)) / 2

/// FLOPs per element, counted in the formulas below. An erf counts as one, as a tanh and an exponential do.
struct ActivationFacts {
    Activation function;
    std::string_view kind, what;
    double forward_flops, backward_flops;
};
inline constexpr ActivationFacts activation_table[] = {
    // fwd: x * x * x * 0.044715 + x: four; times sqrt(2/pi), tanh, plus 1, times 0.5, times x.
    // bwd: x * x, times 0.044715, plus 1, times x and -2 sqrt(2/pi), exponential, plus 1, reciprocal: eight; 1 - s;
    // 2 u', from 0.044715 x^2: three; times x, times s, times 1 - s, plus s, times dy.
    {Activation::gelu_tanh, "gelu", "GELU, tanh form", 9, 17},
    // fwd: x / sqrt(2), erf, plus 1, times 0.5, times x.
    // bwd: Phi: four; its density: x * x, times -0.5, exponential, times 1 / sqrt(2 pi); times x, plus Phi, times dy.
    {Activation::gelu_fast, "gelu_fast", "GELU, tanh form, constant of ten digits", 9, 17},
    {Activation::gelu_erf, "gelu_erf", "GELU as defined, by erf", 5, 11},
    // fwd: times 1.702, exponential, plus 1, x divided by it. bwd: s: four; dy s (1 + 1.702 x (1 - s)): five.
    {Activation::quick_gelu, "quick_gelu", "GELU, sigmoid form", 4, 9},
    // fwd: one maximum, which is one instruction as an addition is. bwd: one comparison.
    {Activation::relu, "relu", "rectifier", 1, 1},
    // The same as quick_gelu without the factor 1.702.
    {Activation::silu, "silu", "SiLU, also called swish", 3, 8},
    // bwd: dy (1 - t^2), with t computed again: four.
    {Activation::tanh, "tanh", "hyperbolic tangent", 1, 4},
};
constexpr double sqrt_2_over_pi(Activation function) {
    return function == Activation::gelu_fast ? 0.7978845608 : 0.797884560802865355879892119868763737;
}
constexpr const ActivationFacts& facts_of(Activation function) { return activation_table[static_cast<int>(function)]; }

/// Calls `call` with the function as a template argument, so that no inner loop branches on it.
template <class Call>
constexpr void with_activation(Activation function, const Call& call) {
    switch (function) {
        case Activation::gelu_tanh: return call.template operator()<Activation::gelu_tanh>();
        case Activation::gelu_fast: return call.template operator()<Activation::gelu_fast>();
        case Activation::gelu_erf: return call.template operator()<Activation::gelu_erf>();
        case Activation::quick_gelu: return call.template operator()<Activation::quick_gelu>();
        case Activation::relu: return call.template operator()<Activation::relu>();
        case Activation::silu: return call.template operator()<Activation::silu>();
        case Activation::tanh: return call.template operator()<Activation::tanh>();
    }
}

/// The activation that a step computes after its head op, if any.
inline std::optional<Activation> absorbed_activation(const Step& step) {
    for (const ActivationFacts& facts : activation_table)
        if (step.absorbs(facts.kind)) return facts.function;
    return std::nullopt;
}

}  // namespace kbench
