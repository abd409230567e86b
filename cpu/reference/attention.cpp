// Reference of attention: fused, and the two products of the unfused form.
#include <algorithm>
#include <tuple>

#include "cpu/reference/rows.h"

namespace kbench::reference {
namespace {

/// Where q, k and v of one head begin in a row of qkv.
struct Head {
    std::int64_t q, k, v;
    Head(const AttentionShape& shape, std::int64_t head)
        : q(head * shape.head_size), k(q + shape.heads * shape.head_size), v(k + shape.heads * shape.head_size) {}
};

/// q · k_j for the first `count` keys of the sequence whose rows of qkv begin at `first_row`.
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

/// The softmax of one query's scores with the errors of its entries, in units and relative to each entry.
struct Weights {
    std::vector<double> p;
    std::vector<double> carried;  ///< by the fp32 (fp64) arithmetic of the score
    std::vector<double> inputs;   ///< by rounding q and k, root-sum-square
    double smallest_normal;       ///< below this, an fp16 p loses relative accuracy
};

Weights weights_of(const std::vector<Dot>& products, double scale, std::int64_t head_size) {
    // Unnormalised weights are exp(s - max s) <= 1; fp16 keeps them to 2^-11 of themselves down to 2^-14 only.
    constexpr double fp16_smallest_normal = 0x1p-14;
    constexpr double exponential_roundings = 8.0;
    double largest = scale * products[0].value, sum = 0;
    for (const Dot& product : products) largest = std::max(largest, scale * product.value);
    Weights weights;
    for (const Dot& product : products) {
        const double p = std::exp(scale * product.value - largest), magnitude = scale * product.magnitude;
        sum += p;
        weights.p.push_back(p);
        // The sum of products; then s and s - max s, each rounded once relative to what they are made of.
        weights.carried.push_back(std::sqrt(static_cast<double>(head_size)) * magnitude + 2.0 * magnitude +
                                  std::abs(largest) + exponential_roundings);
        weights.inputs.push_back(scale * std::sqrt(product.squares));
    }
    for (double& p : weights.p) p /= sum;
    weights.smallest_normal = fp16_smallest_normal / sum;
    return weights;
}

/// sum of p v with the errors of p: an error e_j of a score moves the result by p_j (v_j - result) e_j, since the
/// weights still sum to one.
Expected weighted_sum(const Weights& weights, const std::vector<double>& v, std::int64_t head_size) {
    double value = 0, magnitude = 0, carried = 0, inner = 0, inputs = 0;
    for (std::size_t j = 0; j < v.size(); ++j) {
        value += weights.p[j] * v[j];
        magnitude += weights.p[j] * std::abs(v[j]);
    }
    const auto square = [](double x) { return x * x; };
    for (std::size_t j = 0; j < v.size(); ++j) {
        const double effect = weights.p[j] * (v[j] - value);
        carried += square(effect * weights.carried[j]);
        inner += square(std::max(weights.p[j], weights.smallest_normal) * v[j]);
        inputs += square(effect * weights.inputs[j]) + square(weights.p[j] * v[j]);
    }
    // |value| again: the sum that p is divided by, and the division.
    return {value,
            magnitude + std::abs(value),
            static_cast<std::int64_t>(v.size()) + head_size,
            std::sqrt(carried),
            std::sqrt(inner),
            std::sqrt(inputs)};
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

std::vector<Expected> expected(const Attention& op, Question q) { return attention(op, q.next(), q.elements); }
ElementCost cost(const Attention& op) { return {2 * static_cast<double>(op.shape.seq), op.shape.head_size}; }
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
