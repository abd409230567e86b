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

std::vector<Expected> expected(const RmsNorm& op, Question q) {
    const View x = q.next(), weight = q.next();
    return rms_norm(op, x, weight, q.elements);
}
ElementCost cost(const RmsNorm& op) { return {4, op.width}; }

}  // namespace kbench::reference
