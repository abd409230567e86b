// Reference of attention over a cache: a query's scores with the keys of before and with the new ones.
#include <tuple>

#include "cpu/reference/attention_sums.h"

namespace kbench::reference {
namespace {

/// A row of keys or values: in a cache, or in qkv where its token is new.
struct Place {
    const View& view;
    std::int64_t row, column;
};

/// The keys of one sequence and kv head, or its values.
struct Rows {
    const View &cache, &qkv;
    std::int64_t first_in_cache, first_in_qkv, column_in_qkv, position;

    Rows(const CachedAttention& op, const View& of_cache, const View& of_new, std::int64_t first_column,
         std::int64_t sequence, std::int64_t kv_head, std::int64_t at_position)
        : cache(of_cache),
          qkv(of_new),
          first_in_cache((sequence * op.kv_heads + kv_head) * op.keys()),
          first_in_qkv(sequence * op.queries),
          column_in_qkv(first_column + kv_head * op.head_size),
          position(at_position) {}
    Place of(std::int64_t key) const {
        if (key < position) return {cache, first_in_cache + key, 0};
        return {qkv, first_in_qkv + key - position, column_in_qkv};
    }
};

std::int64_t position_of(const View& positions, std::int64_t sequence) {
    return static_cast<std::int64_t>(positions(sequence, 0));
}

}  // namespace

std::vector<Expected> cached_attention(const CachedAttention& op, View qkv, View key_cache, View value_cache,
                                       View positions, std::span<const Element> elements) {
    const std::int64_t size = op.head_size, first_k = op.heads * size, first_v = first_k + op.kv_heads * size;
    std::vector<Expected> expected(elements.size());
    const auto row_and_head = [&](const Element& e) { return std::tuple(e.row, e.column / size); };
    for_each_group(elements, row_and_head, [&](std::size_t first, std::size_t last) {
        const auto [row, head] = row_and_head(elements[first]);
        const std::int64_t sequence = row / op.queries, kv_head = head / op.group();
        const std::int64_t position = position_of(positions, sequence), own = position + row % op.queries;
        const Rows keys(op, key_cache, qkv, first_k, sequence, kv_head, position),
            values(op, value_cache, qkv, first_v, sequence, kv_head, position);
        std::vector<double> q(static_cast<std::size_t>(size));
        read_row(qkv, row, head * size, size, q.data());
        std::vector<Dot> products;
        for (std::int64_t j = op.first_key(own); j <= own; ++j) {
            const Place key = keys.of(j);
            with_elements(key.view, [&](const auto* data) {
                products.push_back(dot(data + key.row * key.view.stride + key.column, q.data(), size));
            });
        }
        const Weights weights = weights_of(products, op.scale, size);
        std::vector<double> v(products.size());
        for (std::size_t i = first; i < last; ++i) {
            for (std::size_t j = 0; j < v.size(); ++j) {
                const Place value = values.of(op.first_key(own) + static_cast<std::int64_t>(j));
                v[j] = value.view(value.row, value.column + elements[i].column % size);
            }
            expected[i] = weighted_sum(weights, v, size);
        }
    });
    return expected;
}

std::vector<Expected> cache_with_new(const CachedAttention& op, View qkv, std::int64_t first_column, View cache,
                                     View positions, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const std::int64_t key = row % op.keys(), head = row / op.keys(), sequence = head / op.kv_heads;
        const std::int64_t position = position_of(positions, sequence);
        const bool is_new = key >= position && key < position + op.queries;
        const Rows rows(op, cache, qkv, first_column, sequence, head % op.kv_heads, position);
        const Place from = is_new ? rows.of(key) : Place{cache, row, 0};
        const double value = from.view(from.row, from.column + column);
        expected.push_back({value, std::abs(value), 1});
    }
    return expected;
}

std::vector<Expected> expected(const CachedAttention& op, Question q) {
    const View qkv = q.next();
    const bool of_keys = q.asks_for_next();
    const View key_cache = q.next();
    const bool of_values = q.asks_for_next();
    const View value_cache = q.next(), positions = q.next();
    const std::int64_t first_k = op.heads * op.head_size, first_v = first_k + op.kv_heads * op.head_size;
    if (of_keys) return cache_with_new(op, qkv, first_k, key_cache, positions, q.elements);
    if (of_values) return cache_with_new(op, qkv, first_v, value_cache, positions, q.elements);
    return cached_attention(op, qkv, key_cache, value_cache, positions, q.elements);
}
ElementCost cost(const CachedAttention& op) { return {2 * static_cast<double>(op.keys()), op.head_size}; }

}  // namespace kbench::reference
