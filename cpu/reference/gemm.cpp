// Reference of the matrix product and its epilogue.
#include <algorithm>
#include <numeric>

#include "cpu/reference/rows.h"

namespace kbench::reference {
namespace {

/// Columns of w decoded together: those of a row-major [k, n] lie side by side, so a cache line serves several.
constexpr std::int64_t columns_at_once = 16;

/// Writes columns[c] of the product's right side to out[c * k ...]: a column of w, or a row of a transposed one.
void read_columns(const Gemm& gemm, const View& w, std::span<const std::int64_t> columns, double* out) {
    if (gemm.weight_transposed) {
        for (std::size_t c = 0; c < columns.size(); ++c) read_row(w, columns[c], 0, gemm.k, out + c * gemm.k);
        return;
    }
    with_elements(w, [&](const auto* elements) {
        for (std::int64_t i = 0; i < gemm.k; ++i)
            for (std::size_t c = 0; c < columns.size(); ++c)
                out[c * gemm.k + i] = decode(elements[i * w.stride + columns[c]]);
    });
}

}  // namespace

std::vector<Expected> gemm(const Gemm& gemm, View x, View w, View bias, bool with_gelu, View residual,
                           std::span<const Element> elements) {
    // Elements that share columns are computed together: reading a column of w costs more than reading a row of x.
    std::vector<std::size_t> order(elements.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return elements[a].column < elements[b].column; });
    std::vector<std::int64_t> columns;
    std::vector<std::size_t> starts;  // columns[c] is that of order[starts[c]] to order[starts[c + 1] - 1]
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
        std::vector<double> right(count * gemm.k);
        read_columns(gemm, w, std::span(columns).subspan(first, count), right.data());
        for (std::int64_t c = 0; c < count; ++c)
            for (std::size_t i = starts[first + c]; i < starts[first + c + 1]; ++i) {
                const auto [row, column] = elements[order[i]];
                const Dot sum = with_elements(x, [&, row = row](const auto* data) {
                    return dot(data + row * x.stride, right.data() + c * gemm.k, gemm.k);
                });
                Expected e{sum.value, sum.magnitude, gemm.k};
                e.inputs = std::sqrt(sum.squares);
                const auto add = [&e](double term) {
                    e.value += term;
                    e.magnitude += std::abs(term);
                    ++e.terms;
                };
                if (bias) add(at(bias, column));
                if (with_gelu) e = gelu(e);
                if (residual) add(residual(row, column));
                expected[order[i]] = e;
            }
    }
    return expected;
}

std::vector<Expected> expected(const Gemm& op, Question q) {
    const View x = q.next(), w = q.next(), bias = q.next_if(q.step.absorbs<BiasAdd>());
    const View residual = q.next_if(q.step.absorbs<ResidualAdd>());
    return gemm(op, x, w, bias, q.step.absorbs<Gelu>(), residual, q.elements);
}
ElementCost cost(const Gemm& op) { return {static_cast<double>(op.k)}; }

}  // namespace kbench::reference
