// The keys and values of a prompt, written into the caches that decode steps read.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// Token i of sequence b fills row i of each kv head's caches with its key and value; rows from seq on stay as they
/// are. in: qkv [batch * seq, (heads + 2 * kv_heads) * head_size], laid out as for cached_attention; key_cache and
/// value_cache [batch, kv_heads, capacity, head_size], worked on in place.
/// A kind of its own beside `attention`, whose kernels then serve prompts as they are: serving stacks do so, too
/// (vLLM's reshape_and_cache).
struct FillCache {
    static constexpr std::string_view kind = "fill_cache", what = "keys and values of a prompt written into a cache";
    static constexpr std::string_view example = "b1h20s992k1024d64[g4]";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t batch, heads, kv_heads, seq;
    std::int64_t capacity;  ///< rows of a head in the caches
    std::int64_t head_size;
    bool operator==(const FillCache&) const = default;

    /// k is how many keys a head has room for.
    static FillCache parse(ShapeText& text) {
        const std::int64_t batch = text.size('b'), heads = text.size('h'), kv_heads = text.size_or('g', heads);
        const FillCache op{batch, heads, kv_heads, text.size('s'), text.size('k'), text.size('d')};
        if (heads % kv_heads != 0 || op.capacity < op.seq) throw ShapeText::Wrong();
        return op;
    }
    std::string text() const {
        const std::string text =
            shape_text({{'b', batch}, {'h', heads}, {'s', seq}, {'k', capacity}, {'d', head_size}});
        return kv_heads == heads ? text : text + shape_text({{'g', kv_heads}});
    }

    std::int64_t first_key_column() const { return heads * head_size; }
    std::int64_t kv_width() const { return kv_heads * head_size; }
    std::int64_t qkv_width() const { return first_key_column() + 2 * kv_width(); }

    /// Queries are not read.
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec qkv = input("qkv", batch * seq, qkv_width()),
                    key_cache = input("key_cache", batch * kv_heads * capacity, head_size);
        qkv.read = Part{static_cast<double>(batch * seq), first_key_column(), qkv_width()};
        key_cache.use = OperandUse::in_place;
        key_cache.cache = true;
        key_cache.read = Part{0, 0, head_size};
        key_cache.written = Part{static_cast<double>(batch * kv_heads * seq), 0, head_size};
        OperandSpec value_cache = key_cache;
        value_cache.name = "value_cache";
        return {qkv, key_cache, value_cache};
    }
    /// A longer prompt, in a cache that has as much more room.
    Grown<FillCache> grown(Direction, Scale factor) const {
        FillCache op = *this;
        op.seq *= factor;
        op.capacity *= factor;
        return {op, "seq"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// It only moves numbers.
    Work work(Direction) const { return {0}; }
};

}  // namespace kbench
