// Reference of what stands around convolutions and recurrent layers: batch norm, clipping, masks and the transposition.
#include <algorithm>

#include "cpu/reference/rows.h"
#include "kbench/error.h"

namespace kbench::reference {

std::vector<Expected> normalised(const BatchNorm& op, std::vector<Expected> sums, View weight, View bias, View mean,
                                 View variance, std::span<const Element> elements) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::int64_t channel = op.channels > 0 ? elements[i].row / op.height % op.channels : elements[i].column;
        const double scale = at(weight, channel) / std::sqrt(at(variance, channel) + op.epsilon);
        const double center = at(mean, channel), shift = at(bias, channel);
        // Who folds the mean into the bias rounds scale x and scale mean, which may cancel. Epsilon's sum, root,
        // quotient and product round scale four times, each relative to the whole.
        constexpr std::int64_t roundings = 8;
        Expected& sum = sums[i];
        sum.value = (sum.value - center) * scale + shift;
        sum.magnitude = (sum.magnitude + std::abs(center)) * std::abs(scale) + std::abs(shift);
        sum.terms += roundings;
        for (double* effect : {&sum.carried, &sum.inner, &sum.inputs}) *effect *= std::abs(scale);
    }
    return sums;
}

std::vector<Expected> batch_norm(const BatchNorm& op, View x, View weight, View bias, View mean, View variance,
                                 std::span<const Element> elements, View residual) {
    std::vector<Expected> values;
    for (const auto [row, column] : elements) {
        const double first = x(row, column), second = residual ? residual(row, column) : 0.0;
        values.push_back({first + second, std::abs(first) + std::abs(second), residual ? 1 : 0});
    }
    return normalised(op, std::move(values), weight, bias, mean, variance, elements);
}

std::vector<Expected> hardtanh(const Hardtanh& op, View x, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) expected.push_back({std::clamp(x(row, column), op.low, op.high), 0, 0});
    return expected;
}

std::vector<Expected> masked(const TimeMask& op, std::vector<Expected> sums, View lengths,
                             std::span<const Element> elements) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const auto length = static_cast<std::int64_t>(lengths(elements[i].row / op.rows_each, 0));
        if (elements[i].column >= steps_of(length, op.frames_per_step, op.steps)) sums[i] = {0, 0, 0};
    }
    return sums;
}

std::vector<Expected> time_mask(const TimeMask& op, View x, View lengths, std::span<const Element> elements) {
    std::vector<Expected> values;
    for (const auto [row, column] : elements) values.push_back({x(row, column), 0, 0});
    return masked(op, std::move(values), lengths, elements);
}

std::vector<Expected> to_sequence(const ToSequence& op, View x, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements)
        expected.push_back({x(row % op.batch * op.features + column, row / op.batch), 0, 0});
    return expected;
}

std::vector<Expected> expected(const BatchNorm& op, Question q) {
    if (op.training || q.step.direction != Direction::fwd)
        throw Unsupported("batchnorm in training has no reference yet");
    const View x = q.next(), residual = q.next_if(q.step.absorbs<ResidualAdd>());
    const View weight = q.next(), bias = q.next(), mean = q.next(), variance = q.next();
    if (q.step.keeps_intermediates() && q.asks_for_next()) return residual_add(x, residual, q.elements);
    return batch_norm(op, x, weight, bias, mean, variance, q.elements, residual);
}
ElementCost cost(const BatchNorm&) { return {}; }
std::vector<Expected> expected(const Hardtanh& op, Question q) {
    if (q.step.direction != Direction::fwd) throw Unsupported("hardtanh's backward has no reference yet");
    return hardtanh(op, q.next(), q.elements);
}
ElementCost cost(const Hardtanh&) { return {}; }
std::vector<Expected> expected(const TimeMask& op, Question q) {
    const View x = q.next(), lengths = q.next();
    return time_mask(op, x, lengths, q.elements);
}
ElementCost cost(const TimeMask&) { return {}; }
std::vector<Expected> expected(const ToSequence& op, Question q) {
    if (q.step.direction != Direction::fwd) throw Unsupported("to_sequence's backward has no reference yet");
    return to_sequence(op, q.next(), q.elements);
}
ElementCost cost(const ToSequence&) { return {}; }

}  // namespace kbench::reference
