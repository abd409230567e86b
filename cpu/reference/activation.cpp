// Reference of the activations: their values and slopes, and the errors that they make and pass on.
#include <cmath>
#include <numbers>

#include "cpu/reference/rows.h"

namespace kbench::reference {
namespace {

/// The terms of a function's slope, which is gate + through, and what its errors depend on.
struct Slope {
    double gate;      ///< s, Phi, or the whole slope
    double through;   ///< x times the gate's own slope
    double exponent;  ///< the argument of its exponential: each rounding of it moves both terms relative to their size
    double lost;      ///< factor of the exponential: scales what the exponential loses below the smallest number
    double plain;     ///< largest terms of the form that cancels far from zero, such as (1 + t + x u' (1 - t^2)) / 2
    double hardware;  ///< change of the slope per relative error of a tanh
    double value() const { return gate + through; }
};

/// The slope of x s(v), given v and x v': s + x v' s (1 - s).
Slope sigmoid_slope(double v, double x_dv) {
    const double s = 1.0 / (1.0 + std::exp(-v)), through = x_dv * s / (1.0 + std::exp(v)), t = std::tanh(0.5 * v),
                 x_du = 0.5 * x_dv;  // v = 2 u, as tanh(u) has it
    return {s, through, std::abs(v), std::abs(x_du), 0.5 + std::abs(x_du), (0.5 + std::abs(t * x_du)) * std::abs(t)};
}

double sigmoid_argument(Activation function, double x) {
    switch (function) {
        case Activation::gelu_tanh:
        case Activation::gelu_fast: return 2.0 * sqrt_2_over_pi(function) * (x + 0.044715 * x * x * x);
        case Activation::quick_gelu: return 1.702 * x;
        default: return x;
    }
}

Slope slope_of(Activation function, double x) {
    switch (function) {
        case Activation::gelu_tanh:
        case Activation::gelu_fast:
            return sigmoid_slope(sigmoid_argument(function, x),
                                 2.0 * sqrt_2_over_pi(function) * x * (1.0 + 3 * 0.044715 * x * x));
        case Activation::quick_gelu:
        case Activation::silu: return sigmoid_slope(sigmoid_argument(function, x), sigmoid_argument(function, x));
        case Activation::gelu_erf: {
            const double phi = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
            return {0.5 * std::erfc(-x / std::numbers::sqrt2), x * phi, 0.5 * x * x, std::abs(x), 1.0, 0.0};
        }
        case Activation::relu: return {x > 0 ? 1.0 : 0.0, 0, 0, 0, 0, 0};
        case Activation::tanh: break;
    }
    const double t = std::tanh(x), e = std::exp(-2.0 * std::abs(x));
    return {4.0 * e / ((1.0 + e) * (1.0 + e)), 0, 2.0 * std::abs(x), 1.0, 1.0, 2.0 * t * t};
}

/// Roundings of a slope's terms, and of its exponent.
constexpr double slope_roundings = 12.0, exponent_roundings = 6.0;

/// A function's value, the largest size of its slope, and what its roundings are relative to. 1 + tanh cancels for
/// negative x, so the error is relative to x, not to the result. A dozen roundings move the result by that many units
/// each.
struct Curve {
    double value, steepest, scale;
    bool has_hardware;  ///< uses a GPU instruction of fewer digits: tanh.approx.f32, 2^-11 (PTX ISA 8.x, tanh)
};

Curve curve_of(Activation function, double x) {
    const double half = 0.5 * std::abs(x);
    switch (function) {
        case Activation::gelu_tanh:
        case Activation::gelu_fast:
            return {0.5 * x * (1.0 + std::tanh(0.5 * sigmoid_argument(function, x))), 1.13, half, true};
        case Activation::gelu_erf: return {0.5 * x * std::erfc(-x / std::numbers::sqrt2), 1.13, half, false};
        case Activation::quick_gelu:
        case Activation::silu: return {x / (1.0 + std::exp(-sigmoid_argument(function, x))), 1.1, half, true};
        case Activation::relu: return {x > 0 ? x : 0.0, 1.0, 0.0, false};
        case Activation::tanh: break;
    }
    return {std::tanh(x), 1.0, std::abs(std::tanh(x)), true};
}

}  // namespace

Expected activated(Activation function, const Expected& argument) {
    constexpr double roundings = 12.0;
    const Curve curve = curve_of(function, argument.value);
    Expected result = argument;
    result.value = curve.value;
    result.magnitude = curve.steepest * argument.magnitude + roundings * curve.scale;
    result.inputs *= curve.steepest;
    // This is one error, not a sum of many, so it counts at its worst.
    result.inner = curve.steepest * argument.inner + (curve.has_hardware ? curve.scale / deviations : 0.0);
    return result;
}

std::vector<Expected> bias_activation(View x, View bias, std::optional<Activation> function,
                                      std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double term = x(row, column), shift = bias ? at(bias, column) : 0.0;
        const Expected sum{term + shift, std::abs(term) + std::abs(shift), 2};
        expected.push_back(function ? activated(*function, sum) : sum);
    }
    return expected;
}

std::vector<Expected> activation_gradient(Activation function, View x, View dy, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const Slope slope = slope_of(function, x(row, column));
        // Far below zero, s is lost below fp32's smallest number, which a rounding of `smallest` covers.
        constexpr double smallest = 0x1p-100;
        const double size = slope.gate + std::abs(slope.through) + smallest * slope.lost;
        expected.push_back({dy(row, column) * slope.value(),
                            std::abs(dy(row, column)) * size * (slope_roundings + exponent_roundings * slope.exponent),
                            1});
    }
    return expected;
}

Expected times_slope(Activation function, const Expected& dy, double x) {
    // A library may compute a form whose sums cancel far from zero. Then the error is relative to its terms, not to the
    // slope.
    const Slope slope = slope_of(function, x);
    const double exponent = exponent_roundings * slope.exponent * (slope.gate + std::abs(slope.through));
    Expected result = dy;
    result.value *= slope.value();
    result.magnitude *= std::abs(slope.value());
    result.inputs *= std::abs(slope.value());
    // Each is one error, not a sum of many, so it counts at its worst.
    result.carried = std::abs(slope.value()) * dy.carried +
                     std::abs(dy.value) * (slope_roundings * slope.plain + exponent) / deviations;
    result.inner = std::abs(slope.value()) * dy.inner + std::abs(dy.value) * slope.hardware / deviations;
    return result;
}

std::vector<Expected> times_slope(Activation function, std::vector<Expected> products, View x,
                                  std::span<const Element> elements) {
    for (std::size_t i = 0; i < products.size(); ++i)
        products[i] = times_slope(function, products[i], x(elements[i].row, elements[i].column));
    return products;
}

std::vector<Expected> expected_activation(Activation function, Question q) {
    const View first = q.next();
    if (q.step.direction == Direction::bwd) return activation_gradient(function, q.next(), first, q.elements);
    const View bias = q.next_if(q.step.absorbs<BiasAdd>());
    return bias_activation(first, bias, function, q.elements);
}

}  // namespace kbench::reference
