// Reference of the matrix product and its epilogue.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cpu/reference/rows.h"

namespace kbench::reference {
namespace {

/// Columns of w decoded together: in a row-major [k, n] they lie side by side, so one cache line serves several.
constexpr std::int64_t columns_at_once = 16;

/// Writes columns[c] of the product's right side to out[c * k ...]; when transposed, it is a row of the right side.
void read_columns(const Gemm::Product& p, const View& right, std::span<const std::int64_t> columns, double* out) {
    if (p.right_transposed) {
        for (std::size_t c = 0; c < columns.size(); ++c) read_row(right, columns[c], 0, p.k, out + c * p.k);
        return;
    }
    with_elements(right, [&](const auto* elements) {
        for (std::int64_t i = 0; i < p.k; ++i)
            for (std::size_t c = 0; c < columns.size(); ++c)
                out[c * p.k + i] = decode(elements[i * right.stride + columns[c]]);
    });
}

/// Row `row` of the product's left side times a column of its right side.
Dot dot_with_left(const Gemm::Product& p, const View& left, std::int64_t row, const double* column) {
    return with_elements(left, [&](const auto* data) {
        if (!p.left_transposed) return dot(data + row * left.stride, column, p.k);
        std::vector<double> decoded(p.k);
        for (std::int64_t i = 0; i < p.k; ++i) decoded[i] = decode(data[i * left.stride + row]);
        return dot(decoded.data(), column, p.k);
    });
}

/// The product's elements, with what the step adds to each.
std::vector<Expected> multiply(const Gemm::Product& p, View left, View right, View bias,
                               std::optional<Activation> activation, View residual, std::span<const Element> elements) {
    // Elements that share columns are computed together, because reading a column of w costs more than a row of x.
    std::vector<std::size_t> order(elements.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return elements[a].column < elements[b].column; });
    std::vector<std::int64_t> columns;
    std::vector<std::size_t> starts;  // columns[c] serves order[starts[c]] to order[starts[c + 1] - 1]
    for (std::size_t i = 0; i < order.size(); ++i)
        if (columns.empty() || columns.back() != elements[order[i]].column) {
            columns.push_back(elements[order[i]].column);
            starts.push_back(i);
        }
    starts.push_back(order.size());

    std::vector<Expected> expected(elements.size());
    const auto column_count = static_cast<std::int64_t>(columns.size());
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t first = 0; first < column_count; first += columns_at_once) {
        const std::int64_t count = std::min(columns_at_once, column_count - first);
        std::vector<double> read(count * p.k);
        read_columns(p, right, std::span(columns).subspan(first, count), read.data());
        for (std::int64_t c = 0; c < count; ++c)
            for (std::size_t i = starts[first + c]; i < starts[first + c + 1]; ++i) {
                const auto [row, column] = elements[order[i]];
                const Dot sum = dot_with_left(p, left, row, read.data() + c * p.k);
                Expected e{sum.value, sum.magnitude, p.k};
                e.inputs = std::sqrt(sum.squares);
                const auto add = [&e](double term) {
                    e.value += term;
                    e.magnitude += std::abs(term);
                    ++e.terms;
                };
                if (bias) add(at(bias, column));
                if (activation) e = activated(*activation, e);
                if (residual) add(residual(row, column));
                expected[order[i]] = e;
            }
    }
    return expected;
}

}  // namespace

std::vector<Expected> gemm(const Gemm& gemm, View x, View w, View bias, std::optional<Activation> activation,
                           View residual, std::span<const Element> elements) {
    return multiply(gemm.product(Direction::fwd), x, w, bias, activation, residual, elements);
}

std::vector<Expected> gemm_gradient(const Gemm& gemm, Direction direction, View first, View second,
                                    std::span<const Element> elements) {
    const Gemm::Product p = gemm.product(direction);
    if (p.left_is_second) std::swap(first, second);
    return multiply(p, first, second, {}, std::nullopt, {}, elements);
}

std::vector<Expected> product_bias_gradient(const BiasAdd& op, View dy, std::span<const Element> elements) {
    std::vector<Expected> sums = bias_gradient(op, dy, elements);
    for (std::size_t i = 0; i < sums.size(); ++i) {
        double squares = 0;
        for (std::int64_t row = 0; row < op.rows; ++row)
            squares += dy(row, elements[i].column) * dy(row, elements[i].column);
        sums[i].inputs = std::sqrt(squares);
    }
    return sums;
}

std::vector<Expected> products_added_to(View before, std::span<const Element> elements,
                                        std::vector<Expected> products) {
    if (size_of(before.type) == 2)
        for (Expected& product : products)
            product.inner += std::abs(product.value) / deviations;  // counted at its worst
    return added_to(before, elements, std::move(products));
}

/// dw, or db of a bias next to it.
static std::vector<Expected> expected_wgrad(const Gemm& op, Question q) {
    const BiasAdd* bias = q.step.beside > 0 ? q.step.ops.front().get_if<BiasAdd>() : nullptr;
    const bool db_in_place = bias != nullptr && bias->accumulates;
    bool asks_for_db = db_in_place && q.asks_for_next();
    const View db_before = q.next_if(db_in_place), x = q.next(), dy = q.next(), dw_before = q.next_if(op.accumulates);
    asks_for_db |= bias != nullptr && !db_in_place && q.asks_for_next();
    if (asks_for_db) {
        const std::vector<Expected> sums = product_bias_gradient(*bias, dy, q.elements);
        return db_in_place ? added_to(db_before, q.elements, sums) : sums;
    }
    const std::vector<Expected> product = gemm_gradient(op, Direction::wgrad, x, dy, q.elements);
    return op.accumulates ? products_added_to(dw_before, q.elements, product) : product;
}

static std::vector<Expected> expected_dgrad(const Gemm& op, Question q) {
    const View dy = q.next(), w = q.next();
    const std::vector<Expected> product = gemm_gradient(op, Direction::dgrad, dy, w, q.elements);
    const std::optional<Activation> activation = absorbed_activation(q.step);
    return activation ? times_slope(*activation, product, q.next(), q.elements) : product;
}

std::vector<Expected> expected(const Gemm& op, Question q) {
    if (q.step.direction == Direction::wgrad) return expected_wgrad(op, q);
    if (q.step.direction == Direction::dgrad) return expected_dgrad(op, q);
    const View x = q.next(), w = q.next();
    const View bias = q.next_if(q.step.absorbs<BiasAdd>());
    const View residual = q.next_if(q.step.absorbs<ResidualAdd>());
    // An intermediate result that the step stores is made by the ops up to there.
    std::size_t last = q.step.ops.size() - 1;
    for (const std::size_t kept : q.step.kept) {
        if (q.asks_for_next()) {
            last = kept;
            break;
        }
        q.next();
    }
    Step until = q.step;
    until.ops.erase(until.ops.begin() + static_cast<std::ptrdiff_t>(last) + 1, until.ops.end());
    return gemm(op, x, w, until.absorbs<BiasAdd>() ? bias : View{}, absorbed_activation(until),
                until.absorbs<ResidualAdd>() ? residual : View{}, q.elements);
}
ElementCost cost(const Gemm& op, Direction direction) { return {static_cast<double>(op.product(direction).k)}; }

}  // namespace kbench::reference
