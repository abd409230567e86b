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

std::vector<Expected> added_to(View before, std::span<const Element> elements, std::vector<Expected> sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const double term = before(elements[i].row, elements[i].column);
        sums[i].value += term;
        sums[i].magnitude += std::abs(term);
        ++sums[i].terms;
    }
    return sums;
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

/// Added to the terms of sums that may have few: their roundings may well all point the same way.
constexpr std::int64_t of_few_terms = 4;

std::vector<Expected> embedding_dwte(const Embedding& op, View tokens, View dout, View before,
                                     std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size(), {0, 0, of_few_terms});
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        const auto add = [&](const View& from, std::int64_t row) {
            for (std::size_t i = first; i < last; ++i) {
                const double term = from(row, elements[i].column);
                expected[i].value += term;
                expected[i].magnitude += std::abs(term);
                ++expected[i].terms;
            }
        };
        if (op.accumulates) {
            add(before, elements[first].row);
            for (std::size_t i = first; i < last; ++i) ++expected[i].terms;  // stored between two sums
        }
        for (std::int64_t row = 0; row < op.rows; ++row)
            if (static_cast<std::int64_t>(at(tokens, row)) == elements[first].row) add(dout, row);
    });
    return expected;
}

std::vector<Expected> embedding_dwpe(const Embedding& op, View dout, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [position, column] : elements) {
        Expected& sum = expected.emplace_back(Expected{0, 0, op.rows / op.seq + of_few_terms});
        for (std::int64_t row = position; position < op.seq && row < op.rows; row += op.seq) {
            sum.value += dout(row, column);
            sum.magnitude += std::abs(dout(row, column));
        }
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

namespace {

/// GELU's derivative at x, s + 2 x u' s (1 - s), and its parts.
struct GeluSlope {
    double u, x_du, s, through_s;  ///< x_du: x u'
    explicit GeluSlope(double x) {
        const double factor = std::sqrt(2.0 / std::numbers::pi);
        u = factor * (x + 0.044715 * x * x * x);
        x_du = x * factor * (1.0 + 3 * 0.044715 * x * x);
        s = 1.0 / (1.0 + std::exp(-2.0 * u));
        through_s = 2.0 * x_du * s / (1.0 + std::exp(2.0 * u));
    }
    double value() const { return s + through_s; }
};
/// Roundings of the slope's terms, and of 2 u, each of which moves both terms in its own size.
constexpr double slope_roundings = 12.0, exponent_roundings = 6.0;

}  // namespace

std::vector<Expected> gelu_gradient(View x, View dy, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const GeluSlope slope(x(row, column));
        // Far below zero s is lost under the smallest fp32 number, 2^24 of which are about its last place's.
        constexpr double smallest = 0x1p-100;
        const double size = slope.s + std::abs(slope.through_s) + smallest * std::abs(slope.x_du);
        expected.push_back(
            {dy(row, column) * slope.value(),
             std::abs(dy(row, column)) * size * (slope_roundings + exponent_roundings * std::abs(2.0 * slope.u)), 1});
    }
    return expected;
}

Expected times_gelu_slope(const Expected& dy, double x) {
    // A library may compute (1 + t + x u' (1 - t^2)) / 2, t = tanh(u), whose sums cancel far from zero: then the error
    // is relative to 1 and x u', not to the slope.
    const GeluSlope slope(x);
    const double size = 0.5 + std::abs(slope.x_du), t = std::tanh(slope.u);
    const double exponent = exponent_roundings * std::abs(2.0 * slope.u) * (slope.s + std::abs(slope.through_s));
    Expected result = dy;
    result.value *= slope.value();
    result.magnitude *= std::abs(slope.value());
    result.inputs *= std::abs(slope.value());
    // One error each, not a sum of many: counted at their worst. As in gelu, t may be off by 2^-11 of itself.
    result.carried =
        std::abs(slope.value()) * dy.carried + std::abs(dy.value) * (slope_roundings * size + exponent) / deviations;
    result.inner = std::abs(slope.value()) * dy.inner +
                   std::abs(dy.value) * (0.5 + std::abs(t * slope.x_du)) * std::abs(t) / deviations;
    return result;
}

std::vector<Expected> bias_gradient(const BiasAdd& op, View dy, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const Element& element : elements) {
        Expected& sum = expected.emplace_back(Expected{0, 0, op.rows});
        for (std::int64_t row = 0; row < op.rows; ++row) {
            sum.value += dy(row, element.column);
            sum.magnitude += std::abs(dy(row, element.column));
        }
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
    if (q.step.direction == Direction::bwd) {
        const View tokens = q.next(), dout = q.next();
        if (q.asks_for_next()) return embedding_dwte(op, tokens, dout, q.next(), q.elements);
        q.next();
        const std::vector<Expected> sums = embedding_dwpe(op, dout, q.elements);
        return op.accumulates_positions ? added_to(q.next(), q.elements, sums) : sums;
    }
    const View tokens = q.next(), wte = q.next(), wpe = q.next();
    return embedding(op, tokens, wte, wpe, q.elements);
}
std::vector<Expected> expected(const BiasAdd& op, Question q) {
    if (q.step.direction == Direction::bwd) {
        const std::vector<Expected> sums = bias_gradient(op, q.next(), q.elements);
        return op.accumulates ? added_to(q.next(), q.elements, sums) : sums;
    }
    const View x = q.next(), bias = q.next();
    return bias_gelu(x, bias, false, q.elements);
}
std::vector<Expected> expected(const Gelu&, Question q) {
    const View first = q.next();
    if (q.step.direction == Direction::bwd) return gelu_gradient(q.next(), first, q.elements);
    const View bias = q.next_if(q.step.absorbs<BiasAdd>());
    return bias_gelu(first, bias, true, q.elements);
}
std::vector<Expected> expected(const ResidualAdd&, Question q) {
    const View x = q.next(), residual = q.next();
    return residual_add(x, residual, q.elements);
}
ElementCost cost(const Embedding& op, Direction direction) {
    if (direction == Direction::fwd) return {};
    // A row's elements share the search for its token among all. Most tokens of a vocabulary do not occur: a few
    // columns of so many rows that all are of absent ones once in e^8.
    constexpr std::int64_t columns = 16, exponent = 8;
    return {1 + static_cast<double>(op.rows) / static_cast<double>(op.width), std::min(op.width, columns),
            exponent * op.vocab / std::min(op.rows, op.vocab)};
}
ElementCost cost(const BiasAdd& op, Direction direction) {
    return {direction == Direction::bwd ? static_cast<double>(op.rows) : 1};
}
ElementCost cost(const Gelu&) { return {}; }
ElementCost cost(const ResidualAdd&) { return {}; }

}  // namespace kbench::reference
