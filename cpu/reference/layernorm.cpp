// Reference of layer norm, and of the sum that may be fused in front of it.
#include "cpu/reference/rows.h"

namespace kbench::reference {
namespace {

/// s = x + pre_bias + residual, with the sum of its terms' absolute values.
struct Sum {
    double value, magnitude;
};

Sum sum_at(const View& x, const View& pre_bias, const View& residual, std::int64_t row, std::int64_t column) {
    const double a = x(row, column);
    const double b = pre_bias ? at(pre_bias, column) : 0.0;
    const double c = residual ? residual(row, column) : 0.0;
    return {a + b + c, std::abs(a) + std::abs(b) + std::abs(c)};
}

}  // namespace

std::vector<Expected> layer_norm(const LayerNorm& op, View x, View pre_bias, View residual, View weight, View bias,
                                 std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size());
    const auto width = static_cast<double>(op.width);
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        std::vector<Sum> sums;
        double mean = 0, mean_magnitude = 0, mean_square_magnitude = 0, variance = 0;
        for (std::int64_t column = 0; column < op.width; ++column) {
            sums.push_back(sum_at(x, pre_bias, residual, elements[first].row, column));
            mean += sums.back().value / width;
            mean_magnitude += sums.back().magnitude / width;
            mean_square_magnitude += sums.back().magnitude * sums.back().magnitude / width;
        }
        for (const Sum& s : sums) variance += (s.value - mean) * (s.value - mean) / width;
        const double rstd = 1.0 / std::sqrt(variance + op.epsilon);

        for (std::size_t i = first; i < last; ++i) {
            const Sum& s = sums[elements[i].column];
            const double w = at(weight, elements[i].column), b = at(bias, elements[i].column);
            const double normal = (s.value - mean) * rstd * w;
            // Three errors add up. Those of s and of the mean are relative to their terms. That of rstd is relative to
            // rstd: from the sum of squares, and from what rounding s changes in the deviations (sqrt(mean s^2) /
            // sigma; the mean's error cancels in a two-pass variance; a one-pass one loses that ratio's square). The
            // third is that of the products.
            const double from_sums = (s.magnitude + mean_magnitude) * rstd * std::abs(w);
            const double from_rstd = std::abs(normal) * (1.0 + std::sqrt(mean_square_magnitude) * rstd);
            constexpr std::int64_t other_roundings = 16;
            expected[i] = {normal + b, from_sums + from_rstd + std::abs(normal) + std::abs(b),
                           op.width + other_roundings};
        }
    });
    return expected;
}

std::vector<Expected> layer_norm_sum(const LayerNorm&, View x, View pre_bias, View residual,
                                     std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const Sum s = sum_at(x, pre_bias, residual, row, column);
        expected.push_back({s.value, s.magnitude, 3});
    }
    return expected;
}

namespace {

/// A row's mean and rstd, and the size of its errors: that of n = (x - mean) rstd is (|x| + mean |x|) rstd, and the
/// relative one of rstd is `of_rstd`.
struct RowOf {
    double mean = 0, mean_magnitude = 0, rstd = 0, of_rstd = 0;

    RowOf(const LayerNorm& op, const View& x, std::int64_t row) {
        double mean_square = 0, variance = 0;
        const auto width = static_cast<double>(op.width);
        for (std::int64_t c = 0; c < op.width; ++c) {
            mean += x(row, c) / width;
            mean_magnitude += std::abs(x(row, c)) / width;
            mean_square += x(row, c) * x(row, c) / width;
        }
        for (std::int64_t c = 0; c < op.width; ++c) variance += (x(row, c) - mean) * (x(row, c) - mean) / width;
        rstd = 1.0 / std::sqrt(variance + op.epsilon);
        of_rstd = 1.0 + std::sqrt(mean_square) * rstd;
    }
    double normal(double value) const { return (value - mean) * rstd; }
    double magnitude(double value) const { return (std::abs(value) + mean_magnitude) * rstd * of_rstd; }
};

}  // namespace

std::vector<Expected> layer_norm_dx(const LayerNorm& op, View x, View dy, View weight, View past,
                                    std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size());
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        const std::int64_t row = elements[first].row;
        const RowOf of(op, x, row);
        const auto width = static_cast<double>(op.width);
        double mean_g = 0, mean_gn = 0, mean_g_magnitude = 0, mean_gn_magnitude = 0;
        for (std::int64_t c = 0; c < op.width; ++c) {
            const double g = dy(row, c) * at(weight, c);
            mean_g += g / width;
            mean_gn += g * of.normal(x(row, c)) / width;
            mean_g_magnitude += std::abs(g) / width;
            mean_gn_magnitude += std::abs(g) * of.magnitude(x(row, c)) / width;
        }
        for (std::size_t i = first; i < last; ++i) {
            const double value = x(row, elements[i].column),
                         g = dy(row, elements[i].column) * at(weight, elements[i].column);
            const double added = past ? past(row, elements[i].column) : 0.0;
            constexpr std::int64_t other_roundings = 16;
            expected[i] = {
                of.rstd * (g - mean_g - of.normal(value) * mean_gn) + added,
                of.rstd * of.of_rstd * (std::abs(g) + mean_g_magnitude + of.magnitude(value) * mean_gn_magnitude) +
                    std::abs(added),
                op.width + other_roundings};
        }
    });
    return expected;
}

std::vector<Expected> layer_norm_dw(const LayerNorm& op, View x, View dy, std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size(), {0, 0, op.rows + op.width});
    for (std::int64_t row = 0; row < op.rows; ++row) {
        const RowOf of(op, x, row);
        for (std::size_t i = 0; i < elements.size(); ++i) {
            const double value = x(row, elements[i].column), gradient = dy(row, elements[i].column);
            expected[i].value += gradient * of.normal(value);
            expected[i].magnitude += std::abs(gradient) * of.magnitude(value);
        }
    }
    return expected;
}

std::vector<Expected> expected(const LayerNorm& op, Question q) {
    if (q.step.direction == Direction::bwd) {
        const View in = q.next(), dy = q.next(), scale = q.next();
        if (op.accumulates) {
            if (q.asks_for_next()) return added_to(q.next(), q.elements, layer_norm_dw(op, in, dy, q.elements));
            q.next();
            if (q.asks_for_next())
                return added_to(q.next(), q.elements, bias_gradient({op.rows, op.width}, dy, q.elements));
            q.next();
        }
        const View past = q.next_if(q.step.absorbs<ResidualAdd>());  // it passes dx on, so it is the last
        const auto dx = [&] { return layer_norm_dx(op, in, dy, scale, past, q.elements); };
        if (op.accumulates || (!past && q.asks_for_next())) return dx();
        if (!past) q.next();
        if (q.asks_for_next()) return layer_norm_dw(op, in, dy, q.elements);
        q.next();
        if (q.asks_for_next()) return bias_gradient({op.rows, op.width}, dy, q.elements);
        return dx();
    }
    const View x = q.next(), pre_bias = q.next_if(q.step.absorbs<BiasAdd>());
    const View residual = q.next_if(q.step.absorbs<ResidualAdd>());
    const View weight = q.next(), bias = q.next();
    if (q.step.keeps_intermediates() && q.asks_for_next()) return layer_norm_sum(op, x, pre_bias, residual, q.elements);
    return layer_norm(op, x, pre_bias, residual, weight, bias, q.elements);
}
ElementCost cost(const LayerNorm& op, Direction direction) {
    if (direction == Direction::fwd) return {4, op.width};
    return {static_cast<double>(4 * op.rows), op.width};  // a sum over the rows needs every row's mean
}

}  // namespace kbench::reference
