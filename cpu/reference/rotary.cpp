// Reference of what is done to queries and keys before attention: the norm of each head, and its rotation.
#include <tuple>

#include "cpu/reference/rows.h"

namespace kbench::reference {

std::vector<Expected> qk_norm(const QkNorm& op, View qkv, View q_weight, View k_weight,
                              std::span<const Element> elements) {
    const std::int64_t size = op.head_size;
    std::vector<Expected> expected(elements.size());
    const auto row_and_head = [&](const Element& e) { return std::tuple(e.row, e.column / size); };
    for_each_group(elements, row_and_head, [&](std::size_t first, std::size_t last) {
        const auto [row, head] = row_and_head(elements[first]);
        if (head >= op.heads + op.kv_heads) {
            for (std::size_t i = first; i < last; ++i) {
                const double value = qkv(row, elements[i].column);
                expected[i] = {value, std::abs(value), 1};
            }
            return;
        }
        std::vector<double> x(static_cast<std::size_t>(size));
        read_row(qkv, row, head * size, size, x.data());
        double squares = 0;
        for (const double value : x) squares += value * value;
        const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(size) + op.epsilon);
        for (std::size_t i = first; i < last; ++i) {
            const std::int64_t column = elements[i].column % size;
            const double value =
                x[static_cast<std::size_t>(column)] * rstd * at(head < op.heads ? q_weight : k_weight, column);
            // As in rms_norm: half the relative error of a sum from rstd, one from the products.
            constexpr double from_rstd = 0.5, from_products = 1.0;
            constexpr std::int64_t other_roundings = 16;
            expected[i] = {value, std::abs(value) * (from_rstd + from_products), size + other_roundings};
        }
    });
    return expected;
}

std::vector<Expected> rotary_embedding(const RotaryEmbedding& op, View qkv, View positions,
                                       std::span<const Element> elements) {
    const std::int64_t half = op.head_size / 2;
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const std::int64_t head = column / op.head_size, of_head = column % op.head_size, i = of_head % half;
        const double x = qkv(row, column);
        if (head >= op.heads + op.kv_heads) {
            expected.push_back({x, std::abs(x), 1});
            continue;
        }
        const double position = positions(row / op.queries, 0) + static_cast<double>(row % op.queries),
                     angle = position * op.frequencies[static_cast<std::size_t>(i)];
        const double other = of_head < half ? -qkv(row, column + half) : qkv(row, column - half);
        const double value = (x * std::cos(angle) + other * std::sin(angle)) * op.factor;
        // A cosine errs by a unit or two of 1, however small it is: the angle, at most pi once reduced, was rounded.
        constexpr double roundings = 3;
        expected.push_back({value, roundings * op.factor * (std::abs(x) + std::abs(other)), 2});
    }
    return expected;
}

std::vector<Expected> expected(const QkNorm& op, Question q) {
    const View qkv = q.next(), q_weight = q.next(), k_weight = q.next();
    return qk_norm(op, qkv, q_weight, k_weight, q.elements);
}
ElementCost cost(const QkNorm& op) { return {4, op.head_size}; }
std::vector<Expected> expected(const RotaryEmbedding& op, Question q) {
    const View qkv = q.next(), positions = q.next();
    return rotary_embedding(op, qkv, positions, q.elements);
}
ElementCost cost(const RotaryEmbedding&) { return {4}; }

}  // namespace kbench::reference
