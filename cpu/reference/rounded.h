// Numbers of recurrent layers with the variance of their error, which is carried from step to step. Internal to
// cpu/reference/.
#pragma once

#include <cmath>

#include "cpu/reference/rows.h"

namespace kbench::reference {

/// Variances of an error in the two units that Expected counts in, `carried` and `inner`.
struct Variance {
    double carried = 0, inner = 0;
    friend Variance operator+(Variance a, Variance b) { return {a.carried + b.carried, a.inner + b.inner}; }
    /// The variance after multiplication by a factor, or a slope.
    friend Variance operator*(double factor, Variance v) {
        return {square(factor) * v.carried, square(factor) * v.inner};
    }
};
inline Variance errors(double carried, double inner) { return {square(carried), square(inner)}; }

/// A number with the variance of its error.
struct Rounded {
    double value = 0;
    Variance error = {};
};

/// The product of a row of W with h.
struct Product {
    double value = 0, squares = 0;  ///< sum of w h, and of (w h)^2
    Variance error = {};
};

// Each is four units of the largest result: 1 - 2 / (1 + e^2x), as vector loops compute tanh, is no better near 0. A
// hardware tanh has the relative error of the multiplier's format, and a sigmoid computed from it half of
// that.
inline constexpr double function_roundings = 4.0, of_sigmoid = 0.5;

inline Rounded tanh(const Rounded& x) {
    const double t = std::tanh(x.value);
    return {t, (1.0 - square(t)) * x.error + errors(function_roundings, std::abs(t))};
}
inline Rounded product(const Rounded& a, const Rounded& b) {
    return {a.value * b.value, b.value * a.error + a.value * b.error + errors(std::abs(a.value * b.value), 0)};
}

/// The Expected for a number that stands in an output.
inline Expected expected_of(const Rounded& x) {
    Expected expected{x.value, std::abs(x.value), 1};
    expected.carried = std::sqrt(x.error.carried);
    // Where the multiplier's operands are rounded, too, W and h are: as often as h is.
    expected.inner = expected.inputs = std::sqrt(x.error.inner);
    return expected;
}

/// sum of w x over `count`. x holds its values, their squares and its variances, one after another.
inline Product multiply(std::int64_t count, const double* w, const double* x, const double* x2, const double* v,
                        const double* u) {
    double value = 0, squares = 0, carried = 0, inner = 0;
#pragma omp simd reduction(+ : value, squares, carried, inner)
    for (std::int64_t i = 0; i < count; ++i) {
        const double w2 = w[i] * w[i];
        value += w[i] * x[i];
        squares += w2 * x2[i];
        carried += w2 * v[i];
        inner += w2 * u[i];
    }
    return {value, squares, {carried, inner}};
}

}  // namespace kbench::reference
