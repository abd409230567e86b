// The norm of each head of queries and keys before they are rotated.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// Each row is all of q, then all of k, then all of v, each by head, as in CachedAttention. A head of q or k becomes
/// x * rstd * weight, rstd = 1 / sqrt(mean(x^2) + epsilon), with the weight of its kind; v is copied.
/// in: qkv [rows, (heads + 2 * kv_heads) * head_size], q_weight, k_weight [head_size]; out: y, of qkv's shape.
struct QkNorm {
    static constexpr std::string_view kind = "qk_norm", what = "root mean square norm of each head of q and k";
    static constexpr std::string_view example = "r1h16d128[g8]";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, heads, kv_heads, head_size;
    double epsilon = 1e-6;
    bool operator==(const QkNorm&) const = default;

    static QkNorm parse(ShapeText& shape) {
        const std::int64_t heads = shape.size('h');
        return {shape.size('r'), heads, shape.size_or('g', heads), shape.size('d')};
    }
    std::string text() const {
        const std::string text = shape_text({{'r', rows}, {'h', heads}, {'d', head_size}});
        return kv_heads == heads ? text : text + shape_text({{'g', kv_heads}});
    }
    std::int64_t all_heads() const { return heads + 2 * kv_heads; }
    std::vector<OperandSpec> operands(Direction) const {
        return {input("qkv", rows, all_heads() * head_size), weight("q_weight", head_size),
                weight("k_weight", head_size), output("out", rows, all_heads() * head_size)};
    }
    Grown<QkNorm> grown(Direction, Scale factor) const {
        QkNorm op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// As RmsNorm's forward, for each head of q and k.
    Work work(Direction) const {
        const double normalised = static_cast<double>(rows) * static_cast<double>(heads + kv_heads);
        return {normalised * (4 * static_cast<double>(head_size) + 4)};
    }
};

}  // namespace kbench
