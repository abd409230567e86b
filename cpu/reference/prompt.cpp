// Reference of what a prompt's step does beside a forward: its keys and values go into caches, and one row is kept.
#include "cpu/reference/rows.h"

namespace kbench::reference {

std::vector<Expected> filled_cache(const FillCache& op, View qkv, std::int64_t first_column, View cache,
                                   std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) {
        const std::int64_t token = row % op.capacity, head = row / op.capacity;
        const std::int64_t sequence = head / op.kv_heads, in_row = head % op.kv_heads * op.head_size + column;
        const double value =
            token < op.seq ? qkv(sequence * op.seq + token, first_column + in_row) : cache(row, column);
        expected.push_back({value, 0, 0});
    }
    return expected;
}

std::vector<Expected> last_token(const LastToken& op, View x, std::span<const Element> elements) {
    std::vector<Expected> expected;
    for (const auto [row, column] : elements) expected.push_back({x(op.row_of(row), column), 0, 0});
    return expected;
}

std::vector<Expected> expected(const FillCache& op, Question q) {
    const View qkv = q.next();
    const bool of_keys = q.asks_for_next();
    const View key_cache = q.next(), value_cache = q.next();
    const std::int64_t first_key = op.first_key_column();
    return of_keys ? filled_cache(op, qkv, first_key, key_cache, q.elements)
                   : filled_cache(op, qkv, first_key + op.kv_width(), value_cache, q.elements);
}
ElementCost cost(const FillCache&) { return {}; }
std::vector<Expected> expected(const LastToken& op, Question q) { return last_token(op, q.next(), q.elements); }
ElementCost cost(const LastToken&) { return {}; }

}  // namespace kbench::reference
