// Rotary position embedding of queries and keys.
#pragma once

#include <cmath>

#include "kbench/op.h"
#include "kbench/positions.h"

namespace kbench {

/// Su et al., RoFormer, 2021, in the half-rotated form of Hugging Face's checkpoints: with half = head_size / 2 and the
/// angle a = position * frequencies[i], a head x becomes y[i] = (x[i] cos a - x[half + i] sin a) * factor and
/// y[half + i] = (x[half + i] cos a + x[i] sin a) * factor. New token i of sequence b stands at positions[b] + i.
/// in: qkv [batch * queries, (heads + 2 * kv_heads) * head_size], laid out as in CachedAttention, of which v is copied;
/// positions [batch, 1] int32, each from 0 to past; out: y, of qkv's shape.
struct RotaryEmbedding {
    static constexpr std::string_view kind = "rotary_embedding", what = "rotary position embedding of q and k";
    static constexpr std::string_view example = "b1h32q1d64[g8][p2047]";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t batch, heads, kv_heads, queries;
    std::int64_t past;  ///< the largest position of a sequence's first new token
    std::int64_t head_size;
    std::vector<double> frequencies;  ///< head_size / 2 of them, in radians a token
    double factor = 1;
    bool operator==(const RotaryEmbedding&) const = default;

    /// theta^(-2 i / head_size).
    static std::vector<double> plain_frequencies(std::int64_t head_size, double theta) {
        std::vector<double> frequencies;
        for (std::int64_t i = 0; i < head_size / 2; ++i)
            frequencies.push_back(std::pow(theta, -2 * static_cast<double>(i) / static_cast<double>(head_size)));
        return frequencies;
    }
    static RotaryEmbedding parse(ShapeText& shape) {
        const std::int64_t heads = shape.size('h'), head_size = shape.size('d');
        constexpr double theta = 10000;  // RoFormer's
        if (head_size % 2 != 0) throw ShapeText::Wrong();
        return {shape.size('b'),       heads,     shape.size_or('g', heads),          shape.size('q'),
                shape.size_or('p', 0), head_size, plain_frequencies(head_size, theta)};
    }
    std::string text() const {
        std::string text = shape_text({{'b', batch}, {'h', heads}, {'q', queries}, {'d', head_size}});
        if (kv_heads != heads) text += shape_text({{'g', kv_heads}});
        return past > 0 ? text + shape_text({{'p', past}}) : text;
    }
    std::int64_t rows() const { return batch * queries; }
    std::int64_t all_heads() const { return heads + 2 * kv_heads; }
    std::vector<OperandSpec> operands(Direction) const {
        return {input("qkv", rows(), all_heads() * head_size), positions_operand(batch, past),
                output("out", rows(), all_heads() * head_size)};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// An element: two products and a sum. An angle of a token: itself, its cosine and its sine.
    Work work(Direction) const {
        const double rotated = static_cast<double>(heads + kv_heads) * static_cast<double>(head_size);
        return {static_cast<double>(rows()) * (3 * rotated + 3 * static_cast<double>(head_size / 2))};
    }
};

}  // namespace kbench
