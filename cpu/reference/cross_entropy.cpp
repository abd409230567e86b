// Reference of softmax with cross-entropy.
#include <algorithm>

#include "cpu/reference/rows.h"

namespace kbench::reference {
namespace {

bool has_target(const CrossEntropy& op, std::int64_t row) { return row % op.seq + 1 < op.seq; }
std::int64_t target_of(const View& tokens, std::int64_t row) { return static_cast<std::int64_t>(at(tokens, row + 1)); }

/// A row of logits, and the sum of exponentials relative to its largest.
struct Exponentials {
    std::vector<double> logits;
    double largest, sum = 0;
    double relative = 0;  ///< relative error of the sum, in units

    Exponentials(const CrossEntropy& op, const View& from, std::int64_t row)
        : logits(static_cast<std::size_t>(op.vocab)) {
        read_row(from, row, 0, op.vocab, logits.data());
        largest = *std::max_element(logits.begin(), logits.end());
        for (const double logit : logits) {
            const double e = std::exp(logit - largest);
            sum += e;
            if (e > 0) relative += e * relative_of(logit);
        }
        relative = relative / sum + std::sqrt(static_cast<double>(op.vocab));
    }
    /// Relative error of an exponential. exp turns the absolute error of its argument (logit and largest, times
    /// log2(e)) into a relative one; the exponential itself adds four roundings.
    double relative_of(double logit) const { return 4 + 2 * (std::abs(logit) + std::abs(largest)); }
};

/// Calls f(row, first, last) for runs of elements in the same row with a target; others are expected to be 0.
template <class Row, class F>
std::vector<Expected> for_rows_with_target(const CrossEntropy& op, std::span<const Element> elements, Row row_of, F f) {
    std::vector<Expected> expected(elements.size(), {0, 0, 0});
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        const std::int64_t row = row_of(elements[first]);
        if (has_target(op, row)) f(expected, row, first, last);
    });
    return expected;
}

}  // namespace

std::vector<Expected> cross_entropy_losses(const CrossEntropy& op, View logits, View tokens,
                                           std::span<const Element> elements) {
    const auto row_of = [](const Element& e) { return e.column; };
    const auto fill = [&](std::vector<Expected>& expected, std::int64_t row, std::size_t first, std::size_t last) {
        const Exponentials of(op, logits, row);
        const double target = of.logits[static_cast<std::size_t>(target_of(tokens, row))], rest = std::log(of.sum);
        // A relative error of the sum is an absolute one of its logarithm. Each of the three terms adds four roundings.
        const double magnitude = of.relative + 4 * (std::abs(rest) + std::abs(of.largest) + std::abs(target));
        for (std::size_t i = first; i < last; ++i) expected[i] = {rest + of.largest - target, magnitude, 1};
    };
    return for_rows_with_target(op, elements, row_of, fill);
}

std::vector<Expected> cross_entropy_gradient(const CrossEntropy& op, View logits, View tokens, View loss_scale,
                                             std::span<const Element> elements) {
    const double scale = at(loss_scale, 0) / static_cast<double>(op.targets());
    const auto row_of = [](const Element& e) { return e.row; };
    const auto fill = [&](std::vector<Expected>& expected, std::int64_t row, std::size_t first, std::size_t last) {
        const Exponentials of(op, logits, row);
        const std::int64_t target = target_of(tokens, row);
        for (std::size_t i = first; i < last; ++i) {
            const double logit = of.logits[static_cast<std::size_t>(elements[i].column)];
            const double p = std::exp(logit - of.largest) / of.sum, one = elements[i].column == target ? 1 : 0;
            // p has the errors of its own exponential and of the sum, and eight roundings of quotients and products. An
            // exponential may be lost below fp32's smallest number, which a rounding of `smallest` covers.
            constexpr double smallest = 0x1p-100;
            const double of_p = p > 0 ? p * (of.relative_of(logit) + of.relative + 8) : 0.0;
            expected[i] = {scale * (p - one), std::abs(scale) * (of_p + smallest + 4 * one), 1};
        }
    };
    return for_rows_with_target(op, elements, row_of, fill);
}

std::vector<Expected> expected(const CrossEntropy& op, Question q) {
    const bool asks_for_logits = q.asks_for_next();
    const View logits = q.next(), tokens = q.next();
    if (asks_for_logits) return cross_entropy_gradient(op, logits, tokens, q.next(), q.elements);
    return cross_entropy_losses(op, logits, tokens, q.elements);
}
/// For the losses, an element is a row of logits; for the logits, neighbours in a row share that row.
ElementCost cost(const CrossEntropy& op, Direction direction) {
    if (direction == Direction::fwd) return {4.0 * static_cast<double>(op.vocab), 1};
    return {4, op.vocab};
}

}  // namespace kbench::reference
