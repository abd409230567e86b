// Reference of attention: fused, its backward, and the two products of the unfused form.
#include <algorithm>
#include <tuple>

#include "cpu/reference/attention_sums.h"

namespace kbench::reference {
namespace {

/// Where q, k and v of one head start in a row of qkv.
struct Head {
    std::int64_t q, k, v;
    Head(const AttentionShape& shape, std::int64_t head)
        : q(head * shape.head_size), k(q + shape.heads * shape.head_size), v(k + shape.heads * shape.head_size) {}
};

/// q · k_j for the first `count` keys of the sequence whose rows of qkv start at `first_row`.
std::vector<Dot> products_with_keys(const AttentionShape& shape, const View& qkv, std::int64_t first_row,
                                    std::int64_t query, const Head& head, std::int64_t count) {
    std::vector<double> q(shape.head_size);
    read_row(qkv, first_row + query, head.q, shape.head_size, q.data());
    std::vector<Dot> products(count);
    with_elements(qkv, [&](const auto* data) {
        for (std::int64_t j = 0; j < count; ++j)
            products[j] = dot(data + (first_row + j) * qkv.stride + head.k, q.data(), shape.head_size);
    });
    return products;
}

/// The logarithm of the sum, with the errors of its scores: each moves it by p_j times itself.
Expected log_sum_exp(const Weights& weights, std::int64_t head_size) {
    // Two units for each of the sum's terms; the rest is relative to what is added up.
    constexpr double exponential = 2.0;
    double carried = 0, inputs = 0;
    for (std::size_t j = 0; j < weights.p.size(); ++j) {
        carried += square(weights.p[j] * weights.carried[j]);
        // The sum may add terms that are rounded for p v.
        inputs += square(weights.p[j] * weights.inputs[j]) + square(weights.p[j]);
    }
    const double value = weights.largest + weights.log_sum;
    Expected expected{value, exponential + std::abs(weights.largest) + weights.log_sum,
                      static_cast<std::int64_t>(weights.p.size()) + head_size};
    expected.carried = std::sqrt(carried);
    expected.inputs = std::sqrt(inputs);
    return expected;
}

/// What backward reads, and where it belongs to one head of one sequence.
struct Gradient {
    const Attention& op;
    View qkv, out, dout, lse;
    Head head;
    std::int64_t column;     ///< column of the head in out
    std::int64_t first_row;  ///< row of the sequence
    std::int64_t lse_row;

    Gradient(const Attention& of, std::span<const View> views, std::int64_t sequence, std::int64_t head_index)
        : op(of),
          qkv(views[0]),
          out(views[1]),
          dout(views[2]),
          lse(views[3]),
          head(of.shape, head_index),
          column(head_index * of.shape.head_size),
          first_row(sequence * of.shape.seq),
          lse_row(sequence * of.shape.heads + head_index) {}

    Dot dot_of(const View& a, std::int64_t row_a, std::int64_t column_a, const View& b, std::int64_t row_b,
               std::int64_t column_b) const {
        std::vector<double> values(op.shape.head_size);
        read_row(b, first_row + row_b, column_b, op.shape.head_size, values.data());
        Dot result;
        with_elements(a, [&](const auto* data) {
            result = dot(data + (first_row + row_a) * a.stride + column_a, values.data(), op.shape.head_size);
        });
        return result;
    }
};

/// P and dS of a query and a key, and their errors in units as in Expected.
struct Pair {
    double p, ds;
    double p_carried, p_inputs;    ///< relative to p: errors of the exponent
    double dp_carried, dp_inputs;  ///< errors of dP - D, without those that D carries
    double d_carried, d_inputs;    ///< errors of D

    Pair(const Gradient& of, std::int64_t query, std::int64_t key) {
        const Dot s = of.dot_of(of.qkv, query, of.head.q, of.qkv, key, of.head.k);
        const Dot dp = of.dot_of(of.dout, query, of.column, of.qkv, key, of.head.v);
        const Dot d = of.dot_of(of.dout, query, of.column, of.out, query, of.column);
        const double lse = of.lse(of.lse_row, query), root = std::sqrt(static_cast<double>(of.op.shape.head_size));
        p = std::exp(of.op.scale * s.value - lse);
        ds = p * (dp.value - d.value);
        // The sum of products; then s and s - lse, each rounded once relative to its terms.
        p_carried = of.op.scale * s.magnitude * (root + 2.0) + 2.0 * std::abs(lse) + exponential_roundings;
        p_inputs = of.op.scale * std::sqrt(s.squares);
        // Tensor cores may add dP to -D.
        dp_carried = root * (dp.magnitude + std::abs(d.value)) + std::abs(dp.value) + std::abs(d.value);
        dp_inputs = std::sqrt(dp.squares);
        d_carried = root * d.magnitude;
        d_inputs = std::sqrt(d.squares);  // dout may be rounded, as for dP
    }
};

/// The sum over `pairs` of dS x, or of P x, times `scale`. `one_query`: all pairs share one D, whose error moves
/// all terms.
Expected gradient_sum(const std::vector<Pair>& pairs, const std::vector<double>& x, bool of_ds, bool one_query,
                      double scale, std::int64_t head_size) {
    double value = 0, magnitude = 0, carried = 0, inner = 0, inputs = 0, by_d = 0, d_carried = 0, d_inputs = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const Pair& pair = pairs[i];
        const double factor = of_ds ? pair.ds : pair.p, term = scale * factor * x[i], by_dp = scale * pair.p * x[i];
        value += term;
        magnitude += std::abs(term);
        carried += square(term * pair.p_carried);
        inner += square(std::max(std::abs(factor), fp16_smallest_normal) * scale * x[i]);
        inputs += square(term * pair.p_inputs) + square(term);
        if (!of_ds) continue;
        carried += square(by_dp * pair.dp_carried);
        inputs += square(by_dp * pair.dp_inputs);
        by_d += by_dp;
        if (one_query) {
            d_carried = square(by_d * pair.d_carried);
            d_inputs = square(by_d * pair.d_inputs);
        } else {
            d_carried += square(by_dp * pair.d_carried);
            d_inputs += square(by_dp * pair.d_inputs);
        }
    }
    // |value| again, for the multiplication by the scale.
    return {value,
            magnitude + std::abs(value),
            static_cast<std::int64_t>(pairs.size()) + head_size,
            std::sqrt(carried + d_carried),
            std::sqrt(inner),
            std::sqrt(inputs + d_inputs)};
}

}  // namespace

std::vector<Expected> attention(const Attention& op, View qkv, std::span<const Element> elements) {
    const AttentionShape& shape = op.shape;
    std::vector<Expected> expected(elements.size());
    const auto row_and_head = [&](const Element& e) { return std::tuple(e.row, e.column / shape.head_size); };
    for_each_group(elements, row_and_head, [&](std::size_t first, std::size_t last) {
        const auto [row, head_index] = row_and_head(elements[first]);
        const std::int64_t query = row % shape.seq, first_row = row - query, keys = query + 1;
        const Head head(shape, head_index);
        const Weights weights =
            weights_of(products_with_keys(shape, qkv, first_row, query, head, keys), op.scale, shape.head_size);
        std::vector<double> v(keys);
        for (std::size_t i = first; i < last; ++i) {
            const std::int64_t column = head.v + elements[i].column % shape.head_size;
            with_elements(qkv, [&](const auto* data) {
                for (std::int64_t j = 0; j < keys; ++j) v[j] = decode(data[(first_row + j) * qkv.stride + column]);
            });
            expected[i] = weighted_sum(weights, v, shape.head_size);
        }
    });
    return expected;
}

std::vector<Expected> attention_lse(const Attention& op, View qkv, std::span<const Element> elements) {
    const AttentionShape& shape = op.shape;
    std::vector<Expected> expected(elements.size());
    for_each_group(
        elements, [](const Element& e) { return e; },
        [&](std::size_t i, std::size_t) {
            const auto [row, query] = elements[i];
            const Head head(shape, row % shape.heads);
            const auto products = products_with_keys(shape, qkv, row / shape.heads * shape.seq, query, head, query + 1);
            expected[i] = log_sum_exp(weights_of(products, op.scale, shape.head_size), shape.head_size);
        });
    return expected;
}

std::vector<Expected> attention_gradient(const Attention& op, View qkv, View out, View dout, View lse,
                                         std::span<const Element> elements) {
    const AttentionShape& shape = op.shape;
    const View views[] = {qkv, out, dout, lse};
    std::vector<Expected> expected(elements.size());
    const auto row_and_head = [&](const Element& e) { return std::tuple(e.row, e.column / shape.head_size); };
    for_each_group(elements, row_and_head, [&](std::size_t first, std::size_t last) {
        const auto [row, part_and_head] = row_and_head(elements[first]);
        const std::int64_t part = part_and_head / shape.heads, at = row % shape.seq;
        const bool of_q = part == 0, of_v = part == 2;
        const Gradient gradient(op, views, row / shape.seq, part_and_head % shape.heads);
        // A query's gradient sums over the keys up to it, a key's over the queries from it on.
        const std::int64_t begin = of_q ? 0 : at, end = of_q ? at + 1 : shape.seq;
        std::vector<Pair> pairs;
        for (std::int64_t other = begin; other < end; ++other)
            pairs.emplace_back(gradient, of_q ? at : other, of_q ? other : at);
        const View& factors = of_v ? dout : qkv;
        const std::int64_t factor_column = of_v ? gradient.column : of_q ? gradient.head.k : gradient.head.q;
        std::vector<double> x(end - begin);
        for (std::size_t i = first; i < last; ++i) {
            const std::int64_t column = factor_column + elements[i].column % shape.head_size;
            for (std::int64_t other = begin; other < end; ++other)
                x[other - begin] = factors(gradient.first_row + other, column);
            expected[i] = gradient_sum(pairs, x, !of_v, of_q, of_v ? 1.0 : op.scale, shape.head_size);
        }
    });
    return expected;
}

std::vector<Expected> attention_scores(const AttentionScores& op, View qkv, std::span<const Element> elements) {
    const AttentionShape& shape = op.shape;
    std::vector<Expected> expected(elements.size());
    const auto row_of = [](const Element& e) { return e.row; };
    for_each_group(elements, row_of, [&](std::size_t first, std::size_t last) {
        const std::int64_t row = elements[first].row, query = row % shape.seq;
        const Head head(shape, row / shape.seq % shape.heads);
        const std::int64_t first_row = row / (shape.seq * shape.heads) * shape.seq;
        const auto products = products_with_keys(shape, qkv, first_row, query, head, shape.seq);
        for (std::size_t i = first; i < last; ++i) {
            const Dot& product = products[elements[i].column];
            expected[i] = {product.value, product.magnitude, shape.head_size};
            expected[i].inputs = std::sqrt(product.squares);
        }
    });
    return expected;
}

std::vector<Expected> attention_context(const AttentionContext& op, View probabilities, View qkv,
                                        std::span<const Element> elements) {
    const AttentionShape& shape = op.shape;
    std::vector<Expected> expected(elements.size());
    const auto row_and_head = [&](const Element& e) { return std::tuple(e.row, e.column / shape.head_size); };
    for_each_group(elements, row_and_head, [&](std::size_t first, std::size_t last) {
        const auto [row, head_index] = row_and_head(elements[first]);
        const std::int64_t query = row % shape.seq, first_row = row - query;
        const std::int64_t score_row = (row / shape.seq * shape.heads + head_index) * shape.seq + query;
        std::vector<double> p(shape.seq);
        read_row(probabilities, score_row, 0, shape.seq, p.data());
        for (std::size_t i = first; i < last; ++i) {
            const std::int64_t column = Head(shape, head_index).v + elements[i].column % shape.head_size;
            Dot sum;
            for (std::int64_t j = 0; j < shape.seq; ++j) {
                const double product = p[j] * qkv(first_row + j, column);
                sum.value += product;
                sum.magnitude += std::abs(product);
                sum.squares += product * product;
            }
            expected[i] = {sum.value, sum.magnitude, shape.seq};
            expected[i].inputs = std::sqrt(sum.squares);
        }
    });
    return expected;
}

std::vector<Expected> expected(const Attention& op, Question q) {
    const View qkv = q.next();
    if (q.step.direction == Direction::bwd) {
        const View out = q.next(), dout = q.next(), lse = q.next();
        return attention_gradient(op, qkv, out, dout, lse, q.elements);
    }
    return op.saves_lse && q.asks_for_next() ? attention_lse(op, qkv, q.elements) : attention(op, qkv, q.elements);
}
ElementCost cost(const Attention& op, Direction direction) {
    const double products = direction == Direction::bwd ? 4 : 2;
    return {products * static_cast<double>(op.shape.seq), op.shape.head_size};
}
std::vector<Expected> expected(const AttentionScores& op, Question q) {
    return attention_scores(op, q.next(), q.elements);
}
ElementCost cost(const AttentionScores& op) { return {static_cast<double>(op.shape.head_size)}; }
std::vector<Expected> expected(const AttentionContext& op, Question q) {
    const View probabilities = q.next(), qkv = q.next();
    return attention_context(op, probabilities, qkv, q.elements);
}
ElementCost cost(const AttentionContext& op) { return {static_cast<double>(op.shape.seq)}; }

}  // namespace kbench::reference
