// What the tests of the reference share: roundings to narrower types, random matrices, and the share of elements that
// an implementation gets wrong.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "cpu/reference/reference.h"

namespace kbench::reference {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// x to `bits` significant bits, to nearest even.
inline double rounded(double x, int bits) {
    if (x == 0 || !std::isfinite(x)) return x;
    int exponent;
    const double fraction = std::frexp(x, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}
inline double truncated(double x, int bits) {
    if (x == 0) return x;
    int exponent;
    const double fraction = std::frexp(x, &exponent);
    return std::ldexp(std::trunc(std::ldexp(fraction, bits)), exponent - bits);
}
/// fp16 with its subnormals.
inline double to_fp16(double x) {
    return std::abs(x) < 0x1p-14 ? std::ldexp(std::nearbyint(std::ldexp(x, 24)), -24) : rounded(x, 11);
}
inline double to_bf16(double x) { return rounded(x, 8); }
inline double to_tf32(double x) { return rounded(x, 11); }
inline double to_fp32(double x) { return static_cast<float>(x); }
inline double exactly(double x) { return x; }

using Rounding = double (*)(double);

/// A matrix in fp64 whose values may be those of a narrower type.
struct Matrix {
    std::int64_t rows, columns;
    std::vector<double> data;

    Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), data(r * c) {}
    double& operator()(std::int64_t r, std::int64_t c) { return data[r * columns + c]; }
    double operator()(std::int64_t r, std::int64_t c) const { return data[r * columns + c]; }
    View view() const { return {data.data(), DataType::fp64, rows, columns, columns}; }
    Matrix map(Rounding round) const {
        Matrix result = *this;
        for (double& x : result.data) x = round(x);
        return result;
    }
};

inline Matrix random_normal(std::int64_t rows, std::int64_t columns, unsigned seed, double mean = 0) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal(mean, 1.0);
    Matrix matrix(rows, columns);
    for (double& x : matrix.data) x = normal(generator);
    return matrix;
}

inline std::vector<Element> all_elements(std::int64_t rows, std::int64_t columns) {
    std::vector<Element> elements;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) elements.push_back({r, c});
    return elements;
}

/// Fraction of elements whose computed value is outside of its bound.
inline double disagreement(const std::vector<Element>& elements, const std::vector<Expected>& expected,
                           const std::function<double(Element)>& computed, Precision precision, DataType stored) {
    int wrong = 0;
    for (std::size_t i = 0; i < elements.size(); ++i)
        wrong += !agrees(computed(elements[i]), expected[i], precision, stored);
    return static_cast<double>(wrong) / static_cast<double>(elements.size());
}

/// gelu's definition, in the precision of T.
template <class T>
T gelu_tanh(T x) {
    const T inner = static_cast<T>(0.7978845608028654) * (x + static_cast<T>(0.044715) * x * x * x);
    return static_cast<T>(0.5) * x * (1 + std::tanh(inner));
}

}  // namespace kbench::reference
