// Reference of RMS norm.
#include "cpu/reference/rows.h"

namespace kbench::reference {

std::vector<Expected> rms_norm(const RmsNorm& op, View x, View weight, std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size());
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        std::vector<double> row(static_cast<std::size_t>(op.width));
        read_row(x, elements[first].row, 0, op.width, row.data());
        double squares = 0;
        for (const double value : row) squares += value * value;
        const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(op.width) + op.epsilon);

        for (std::size_t i = first; i < last; ++i) {
            const std::int64_t column = elements[i].column;
            const double value = row[static_cast<std::size_t>(column)] * rstd * at(weight, column);
            // Squares do not cancel: their sum has the relative error of a sum, and the root halves it. The products,
            // the root and the division add their own roundings, each relative to the value.
            constexpr double from_rstd = 0.5, from_products = 1.0;
            constexpr std::int64_t other_roundings = 16;
            expected[i] = {value, std::abs(value) * (from_rstd + from_products), op.width + other_roundings};
        }
    });
    return expected;
}

namespace {

double rstd_of(const RmsNorm& op, const View& x, std::int64_t row) {
    double squares = 0;
    for (std::int64_t c = 0; c < op.width; ++c) squares += x(row, c) * x(row, c);
    return 1.0 / std::sqrt(squares / static_cast<double>(op.width) + op.epsilon);
}

}  // namespace

std::vector<Expected> rms_norm_dx(const RmsNorm& op, View x, View dy, View weight, std::span<const Element> elements) {
    std::vector<Expected> expected(elements.size());
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        const std::int64_t row = elements[first].row;
        const double rstd = rstd_of(op, x, row);
        double mean_gn = 0, mean_gn_magnitude = 0;
        for (std::int64_t c = 0; c < op.width; ++c) {
            const double gn = dy(row, c) * at(weight, c) * x(row, c) * rstd / static_cast<double>(op.width);
            mean_gn += gn;
            mean_gn_magnitude += std::abs(gn);
        }
        for (std::size_t i = first; i < last; ++i) {
            const std::int64_t column = elements[i].column;
            const double g = dy(row, column) * at(weight, column), n = x(row, column) * rstd;
            // Only the sum of g n has terms that cancel. The squares in rstd do not; rstd occurs once in the first term
            // and three times in the second, each time with half the relative error of a sum.
            constexpr double of_first = 1.5, of_second = 2.5;
            constexpr std::int64_t other_roundings = 16;
            expected[i] = {rstd * (g - n * mean_gn),
                           rstd * (of_first * std::abs(g) + of_second * std::abs(n) * mean_gn_magnitude),
                           op.width + other_roundings};
        }
    });
    return expected;
}

std::vector<Expected> rms_norm_dw(const RmsNorm& op, View x, View dy, std::span<const Element> elements) {
    constexpr double from_rstd = 0.5, from_sum = 1.0;
    std::vector<Expected> expected(elements.size(), {0, 0, op.rows + op.width});
    for (std::int64_t row = 0; row < op.rows; ++row) {
        const double rstd = rstd_of(op, x, row);
        for (std::size_t i = 0; i < elements.size(); ++i) {
            const double term = dy(row, elements[i].column) * x(row, elements[i].column) * rstd;
            expected[i].value += term;
            expected[i].magnitude += std::abs(term) * (from_rstd + from_sum);
        }
    }
    return expected;
}

std::vector<Expected> expected(const RmsNorm& op, Question q) {
    const View x = q.next();
    if (q.step.direction == Direction::bwd) {
        const View dy = q.next(), scale = q.next();
        if (op.accumulates && q.asks_for_next())
            return added_to(q.next(), q.elements, rms_norm_dw(op, x, dy, q.elements));
        if (op.accumulates) return rms_norm_dx(op, x, dy, scale, q.elements);
        return q.asks_for_next() ? rms_norm_dx(op, x, dy, scale, q.elements) : rms_norm_dw(op, x, dy, q.elements);
    }
    return rms_norm(op, x, q.next(), q.elements);
}
ElementCost cost(const RmsNorm& op, Direction direction) {
    if (direction == Direction::fwd) return {4, op.width};
    return {static_cast<double>(4 * op.rows), op.width};  // a sum over the rows needs every row's rstd
}

}  // namespace kbench::reference
