// Reference of the scale, the causal mask and the softmax of unfused attention.
#include <algorithm>
#include <limits>

#include "cpu/reference/rows.h"

namespace kbench::reference {

std::vector<Expected> scale_mask(const ScaleMask& op, View scores, std::span<const Element> elements) {
    // Four terms stand for the roundings of scale and of the product.
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const double scaled = op.scale * scores(row, column);
        if (column <= row % op.shape.seq)
            expected.push_back({scaled, std::abs(scaled), 4});
        else
            expected.push_back({-std::numeric_limits<double>::infinity(), 0.0, 0});
    }
    return expected;
}

std::vector<Expected> softmax(const Softmax& op, View scores, std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size());
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        std::vector<double> s(op.width);
        read_row(scores, elements[first].row, 0, op.width, s.data());
        const double largest = *std::max_element(s.begin(), s.end());
        double sum = 0, mean_score = 0;
        for (double score : s) {
            const double e = std::exp(score - largest);
            sum += e;
            if (e > 0) mean_score += e * std::abs(score);
        }
        mean_score /= sum;
        for (std::size_t i = first; i < last; ++i) {
            const double score = s[elements[i].column], p = std::exp(score - largest) / sum;
            // exp turns the absolute error of its argument, from s and max s, into a relative one of p and of the sum.
            // Two exponentials, the sum and the division add eight roundings.
            const double relative = p > 0 ? 8.0 + std::abs(score) + 2.0 * std::abs(largest) + mean_score : 0.0;
            expected[i] = {p, p * relative, op.width};
        }
    });
    return expected;
}

std::vector<Expected> expected(const ScaleMask& op, Question q) { return scale_mask(op, q.next(), q.elements); }
ElementCost cost(const ScaleMask&) { return {}; }
std::vector<Expected> expected(const Softmax& op, Question q) { return softmax(op, q.next(), q.elements); }
ElementCost cost(const Softmax& op) { return {4, op.width}; }

}  // namespace kbench::reference
