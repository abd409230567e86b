// Reference of the element-wise ops: embedding, bias and GELU, residual addition.
#include <cmath>
#include <numbers>

#include "cpu/reference/rows.h"

namespace kbench::reference {

double View::operator()(std::int64_t row, std::int64_t column) const {
    return with_elements(*this, [&](const auto* elements) { return decode(elements[row * stride + column]); });
}

Expected gelu(const Expected& argument) {
    // |f'| <= 1.13. The polynomial, tanh and the products round a dozen times, each moving the result by at most
    // |x| / 2 units: 1 + tanh cancels for negative x, so the error is relative to x, not to the result.
    constexpr double largest_slope = 1.13, roundings = 12.0;
    const double x = argument.value, half = 0.5 * std::abs(x);
    const double t = std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x));
    Expected result = argument;
    result.value = 0.5 * x * (1.0 + t);
    result.magnitude = largest_slope * argument.magnitude + roundings * half;
    result.inputs *= largest_slope;
    // tanh.approx.f32 has relative error 2^-11 (PTX ISA 8.x, tanh). One error, not a sum of many: counted at its worst.
    result.inner = largest_slope * argument.inner + half / deviations;
    return result;
}

std::vector<Expected> embedding(const Embedding& op, View tokens, View wte, View wpe,
                                std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double token = wte(static_cast<std::int64_t>(at(tokens, row)), column);
        const double position = wpe(row % op.seq, column);
        expected.push_back({token + position, std::abs(token) + std::abs(position), 2});
    }
    return expected;
}

std::vector<Expected> bias_gelu(View x, View bias, bool with_gelu, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double term = x(row, column), shift = bias ? at(bias, column) : 0.0;
        const Expected sum{term + shift, std::abs(term) + std::abs(shift), 2};
        expected.push_back(with_gelu ? gelu(sum) : sum);
    }
    return expected;
}

std::vector<Expected> residual_add(View x, View residual, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double a = x(row, column), b = residual(row, column);
        expected.push_back({a + b, std::abs(a) + std::abs(b), 2});
    }
    return expected;
}

std::vector<Expected> expected(const Embedding& op, Question q) {
    const View tokens = q.next(), wte = q.next(), wpe = q.next();
    return embedding(op, tokens, wte, wpe, q.elements);
}
std::vector<Expected> expected(const BiasAdd&, Question q) {
    const View x = q.next(), bias = q.next();
    return bias_gelu(x, bias, false, q.elements);
}
std::vector<Expected> expected(const Gelu&, Question q) {
    const View x = q.next(), bias = q.next_if(q.step.absorbs<BiasAdd>());
    return bias_gelu(x, bias, true, q.elements);
}
std::vector<Expected> expected(const ResidualAdd&, Question q) {
    const View x = q.next(), residual = q.next();
    return residual_add(x, residual, q.elements);
}
ElementCost cost(const Embedding&) { return {}; }
ElementCost cost(const BiasAdd&) { return {}; }
ElementCost cost(const Gelu&) { return {}; }
ElementCost cost(const ResidualAdd&) { return {}; }

}  // namespace kbench::reference
