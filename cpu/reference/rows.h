// What the reference's ops share: decoding stored types to fp64, and grouping elements by the work they share.
// Internal to cpu/reference/.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/reference/reference.h"

namespace kbench::reference {

constexpr double square(double x) { return x * x; }

enum class Fp16Bits : std::uint16_t {};
enum class Bf16Bits : std::uint16_t {};

inline double decode(Bf16Bits bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
inline double decode(float x) { return x; }
inline double decode(double x) { return x; }
inline double decode(std::int32_t x) { return x; }

/// A multiplication moves the exponent from fp16's bias (15) to fp32's (127) and also normalises subnormals.
inline double decode(Fp16Bits bits) {
    const auto word = static_cast<std::uint32_t>(bits);
    const std::uint32_t shifted = (word & 0x7fffu) << 13;
    const bool finite = (word & 0x7c00u) != 0x7c00u;
    const float magnitude =
        finite ? std::bit_cast<float>(shifted) * 0x1p112f : std::bit_cast<float>(shifted | 0x7f800000u);
    return (word & 0x8000u) ? -magnitude : magnitude;
}

/// Calls f(p) with a typed pointer p to the view's elements, so that loops inside f decode without a branch.
template <class F>
auto with_elements(const View& view, F f) {
    switch (view.type) {
        case DataType::fp16: return f(static_cast<const Fp16Bits*>(view.data));
        case DataType::bf16: return f(static_cast<const Bf16Bits*>(view.data));
        case DataType::fp32: return f(static_cast<const float*>(view.data));
        case DataType::int32: return f(static_cast<const std::int32_t*>(view.data));
        case DataType::fp64: break;
    }
    return f(static_cast<const double*>(view.data));
}

/// Element i of a dense vector, whether its view is one row or one column.
inline double at(const View& vector, std::int64_t i) { return vector(0, i); }

/// Writes `count` elements of a row, from column `first` on.
inline void read_row(const View& view, std::int64_t row, std::int64_t first, std::int64_t count, double* out) {
    with_elements(view, [&](const auto* data) {
        const auto* source = data + row * view.stride + first;
        for (std::int64_t i = 0; i < count; ++i) out[i] = decode(source[i]);
    });
}

/// A sum of products, with what error_bound needs to know about it.
struct Dot {
    double value = 0, magnitude = 0, squares = 0;
};

template <class T>
Dot dot(const T* x, const double* y, std::int64_t count) {
    double value = 0, magnitude = 0, squares = 0;
#pragma omp simd reduction(+ : value, magnitude, squares)
    for (std::int64_t i = 0; i < count; ++i) {
        const double product = decode(x[i]) * y[i];
        value += product;
        magnitude += std::abs(product);
        squares += product * product;
    }
    return {value, magnitude, squares};
}

/// Calls f(first, last) in parallel for each run of elements with equal key(element).
template <class Key, class F>
void for_each_group(std::span<const Element> elements, Key key, F f) {
    std::vector<std::size_t> starts;
    for (std::size_t i = 0; i < elements.size(); ++i)
        if (i == 0 || key(elements[i]) != key(elements[i - 1])) starts.push_back(i);
    starts.push_back(elements.size());
    const auto groups = static_cast<std::int64_t>(starts.size()) - 1;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t group = 0; group < groups; ++group) f(starts[group], starts[group + 1]);
}

/// The function's expected value at `argument`, with the error that it makes and passes on.
Expected activated(Activation function, const Expected& argument);
/// `dy` times the function's slope at `x`, with the error that the slope has and passes on in any form of computation.
Expected times_slope(Activation function, const Expected& dy, double x);

}  // namespace kbench::reference
