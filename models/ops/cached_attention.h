// Attention of a few new tokens over a cache of keys and values, which they join.
#pragma once

#include <algorithm>
#include <cmath>

#include "kbench/op.h"
#include "kbench/positions.h"

namespace kbench {

/// out = softmax(scale * q k^T) v for each query head, where query head h reads kv head h / (heads / kv_heads)
/// (Ainslie et al., GQA, 2023). New token i of sequence b stands at position p = positions[b] + i: its key and value
/// are written to row p of the caches, and it sees the keys at j <= p, of a window w only those with j > p - w.
/// in: qkv [batch * queries, (heads + 2 * kv_heads) * head_size], in each row first all of q, then all of k, then all
/// of v, each by head; key_cache and value_cache [batch, kv_heads, keys, head_size], worked on in place; positions
/// [batch, 1] int32, each from 0 to past; out: out [batch * queries, heads * head_size], heads side by side.
/// A kind of its own beside `attention`, which has neither state nor positions and has a backward.
struct CachedAttention {
    static constexpr std::string_view kind = "cached_attention",
                                      what = "attention of new tokens over a cache of keys and values";
    static constexpr std::string_view example = "b1h20q1k1024d64[g4][w256]";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t batch, heads, kv_heads, queries;
    std::int64_t past;  ///< tokens in the cache before, at the most; costs are those of so many
    std::int64_t head_size;
    std::int64_t window = 0;  ///< 0: none
    double scale;
    bool operator==(const CachedAttention&) const = default;

    /// k is how many keys the last query may see, so that past is k - q. Scale is 1 / sqrt(head size).
    static CachedAttention parse(ShapeText& text) {
        const std::int64_t batch = text.size('b'), heads = text.size('h'), kv_heads = text.size_or('g', heads);
        const std::int64_t queries = text.size('q'), keys = text.size('k'), head_size = text.size('d');
        if (heads % kv_heads != 0 || keys < queries) throw ShapeText::Wrong();
        return {batch,
                heads,
                kv_heads,
                queries,
                keys - queries,
                head_size,
                text.size_or('w', 0),
                1 / std::sqrt(static_cast<double>(head_size))};
    }
    std::string text() const {
        std::string text = shape_text({{'b', batch}, {'h', heads}, {'q', queries}, {'k', keys()}, {'d', head_size}});
        if (kv_heads != heads) text += shape_text({{'g', kv_heads}});
        return window > 0 ? text + shape_text({{'w', window}}) : text;
    }

    std::int64_t keys() const { return past + queries; }  ///< rows of a head in the caches
    std::int64_t group() const { return heads / kv_heads; }
    std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_size; }
    /// The first key that the query at `position` sees.
    std::int64_t first_key(std::int64_t position) const {
        return window > 0 ? std::max<std::int64_t>(0, position - window + 1) : 0;
    }

    /// The caches' part that is read are tokens from before; the new ones are read as part of qkv.
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec key_cache = input("key_cache", batch * kv_heads * keys(), head_size);
        const auto rows_of = [&](std::int64_t tokens) {
            return Part{static_cast<double>(batch * kv_heads * tokens), 0, head_size};
        };
        key_cache.use = OperandUse::in_place;
        key_cache.cache = true;
        key_cache.read = rows_of(past - first_key(past));
        key_cache.written = rows_of(queries);
        OperandSpec value_cache = key_cache;
        value_cache.name = "value_cache";
        return {input("qkv", batch * queries, qkv_width()), key_cache, value_cache, positions_operand(batch, past),
                output("out", batch * queries, heads * head_size)};
    }
    /// More keys; a window of fewer sees as many more of them.
    Grown<CachedAttention> grown(Direction, Scale factor) const {
        CachedAttention op = *this;
        op.past = std::max<std::int64_t>(0, keys() * factor - queries);
        op.window *= factor;
        return {op, "keys"};
    }
    /// A key serves a group's few queries: products of matrices and vectors, which plain multiply-adds make as fast as
    /// memory gives the keys.
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// As attention's forward, for the pairs that are visible.
    Work work(Direction) const {
        double pairs = 0;
        for (std::int64_t i = 0; i < queries; ++i) pairs += static_cast<double>(past + i + 1 - first_key(past + i));
        const auto each = static_cast<double>(batch * heads), size = static_cast<double>(head_size);
        return {each * (pairs * (4 * size + 4) + static_cast<double>(queries) * size)};
    }
};

}  // namespace kbench
