// Reference of the ops around convolutions and recurrent layers: clipping, masks and the transposition.
#include <algorithm>

#include "cpu/reference/rows.h"

namespace kbench::reference {

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

std::vector<Expected> expected(const Hardtanh& op, Question q) {
    if (q.step.direction == Direction::fwd) return hardtanh(op, q.next(), q.elements);
    const View y = q.next(), dy = q.next();
    std::vector<Expected> expected;
    for (const auto [row, column] : q.elements) {
        const double clipped = y(row, column);
        expected.push_back({op.low < clipped && clipped < op.high ? dy(row, column) : 0.0, 0, 0});
    }
    return expected;
}
ElementCost cost(const Hardtanh&) { return {}; }
/// Backward is the same for gradients.
std::vector<Expected> expected(const TimeMask& op, Question q) {
    const View x = q.next(), lengths = q.next();
    return time_mask(op, x, lengths, q.elements);
}
ElementCost cost(const TimeMask&) { return {}; }
std::vector<Expected> expected(const ToSequence& op, Question q) {
    if (q.step.direction == Direction::fwd) return to_sequence(op, q.next(), q.elements);
    const View dy = q.next();
    std::vector<Expected> expected;
    for (const auto [row, column] : q.elements)
        expected.push_back({dy(column * op.batch + row / op.features, row % op.features), 0, 0});
    return expected;
}
ElementCost cost(const ToSequence&) { return {}; }

}  // namespace kbench::reference
