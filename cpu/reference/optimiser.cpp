// Reference of the ops on gradients: AdamW and the global norm.
#include <algorithm>

#include "cpu/reference/rows.h"

namespace kbench::reference {
namespace {

/// The factor of gradients; 0 where the step is skipped.
double multiplier(const AdamW& op, const View& schedule, const View& norm) {
    const double unclipped = at(schedule, 7), length = op.clips ? at(norm, 0) : 0;
    if (!std::isfinite(unclipped) || !std::isfinite(length)) return 0;
    if (!op.clips || !(at(schedule, 8) > 0)) return unclipped;
    return unclipped * std::min(1.0, at(schedule, 8) / (std::abs(unclipped) * length + AdamW::clip_epsilon));
}

}  // namespace

std::vector<Expected> global_norm(std::span<const View> gradients) {
    double squares = 0;
    std::int64_t count = 0;
    for (const View& gradient : gradients) {
        with_elements(gradient, [&](const auto* elements) {
            // Summed in parts: one after another, 50 million squares gave a root off by 1.1e-14; fp64 allows 7.7e-15.
            constexpr std::int64_t part = 4096;
            for (std::int64_t first = 0; first < gradient.columns; first += part) {
                double sum = 0;
                for (std::int64_t i = first; i < std::min(gradient.columns, first + part); ++i) {
                    const double g = decode(elements[i]);
                    sum += g * g;
                }
                squares += sum;
            }
        });
        count += gradient.columns;
    }
    // fp32 sums have at most 4096 squares; otherwise a norm of 774 million could be off by 0.2 % and miss a whole
    // matrix. Sums beyond that must be fp64 or pairwise.
    constexpr std::int64_t longest_sum = 4096, others = 4;
    const std::int64_t terms = std::min(count, longest_sum) + others;
    // Squares below fp32's smallest number, 2^-126, may be lost. `count` of them have a root of 2^-63 sqrt(count),
    // which is 2^-39 of a unit for each of that many.
    const double lost = 0x1p-39 * std::sqrt(static_cast<double>(count) / static_cast<double>(terms));
    return {{std::sqrt(squares), std::sqrt(squares) + lost, terms}};
}

std::vector<Expected> adamw(const AdamW& op, std::span<const View> operands, std::size_t output,
                            std::span<const Element> elements) {
    const View schedule = operands[0];
    const double lr = at(schedule, 0), beta1 = at(schedule, 1), beta2 = at(schedule, 2), epsilon = at(schedule, 3),
                 decay = lr * at(schedule, 4), correction1 = at(schedule, 5), correction2 = at(schedule, 6);
    const double times = multiplier(op, schedule, operands[1]);
    const std::size_t each = op.operands_each(), which = (output - op.first_operand()) % each;
    const std::span<const View> of = operands.subspan(output - which, each);
    const View weight = of[op.master ? 4 : 0];
    // A dozen roundings, and two approximations (root and quotient) with the largest error of any hardware.
    constexpr std::int64_t terms = 16 * 16;
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        if (times == 0) {
            expected.push_back({of[which](row, column), 0, 0});
            continue;
        }
        const double g = times * of[1](row, column), m_before = of[2](row, column), w = weight(row, column);
        const double m = beta1 * m_before + (1 - beta1) * g;
        const double m_magnitude = beta1 * std::abs(m_before) + (1 - beta1) * std::abs(g);
        const double v = beta2 * of[3](row, column) + (1 - beta2) * g * g;
        if (which == 2) {
            expected.push_back({m, m_magnitude, terms});
        } else if (which == 3) {
            expected.push_back({v, v, terms});
        } else {
            const double step = lr / correction1 / (std::sqrt(v / correction2) + epsilon);
            expected.push_back({w * (1 - decay) - step * m, std::abs(w) + step * m_magnitude, terms});
        }
    }
    return expected;
}

std::vector<Expected> expected(const GlobalNorm& op, Question q) {
    std::vector<View> gradients;
    for (std::size_t i = 0; i < op.sizes.size(); ++i) gradients.push_back(q.next());
    return global_norm(gradients);
}
ElementCost cost(const GlobalNorm& op) { return {static_cast<double>(total_size(op.sizes))}; }
std::vector<Expected> expected(const AdamW& op, Question q) {
    std::vector<View> operands;
    for (std::size_t i = 0; i < op.first_operand() + op.sizes.size() * op.operands_each(); ++i)
        operands.push_back(q.next());
    return adamw(op, operands, q.output, q.elements);
}
ElementCost cost(const AdamW&) { return {16}; }

}  // namespace kbench::reference
