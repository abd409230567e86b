// Reference of layer norm and of the sum that may be fused in front of it.
#include "cpu/reference/rows.h"

namespace kbench::reference {
namespace {

/// s = x + pre_bias + residual with the absolute values of its terms added up.
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
            // Three errors add up: of s and of the mean, each relative to its terms; of rstd, relative to itself by the
            // sum of squares and by what rounding s changes the deviations (sqrt(mean s^2) / sigma of them; the mean's
            // error cancels in a two-pass variance, and a one-pass one loses the square of that ratio); of the
            // products.
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

std::vector<Expected> expected(const LayerNorm& op, Question q) {
    const View x = q.next(), pre_bias = q.next_if(q.step.absorbs<BiasAdd>());
    const View residual = q.next_if(q.step.absorbs<ResidualAdd>());
    const View weight = q.next(), bias = q.next();
    if (q.step.keeps_intermediates() && q.asks_for_next()) return layer_norm_sum(op, x, pre_bias, residual, q.elements);
    return layer_norm(op, x, pre_bias, residual, weight, bias, q.elements);
}
ElementCost cost(const LayerNorm& op) { return {4, op.width}; }

}  // namespace kbench::reference
