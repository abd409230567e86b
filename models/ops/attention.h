// Causal multi-head self-attention as one op (Vaswani et al., 2017).
#pragma once

#include <cmath>

#include "kbench/attention_shape.h"

namespace kbench {

/// out = softmax(scale * q k^T, causal) v for each batch and head (Vaswani et al., 2017, eq. 1).
/// in: qkv; out: [batch * seq, heads * head_size], heads side by side.
struct Attention {
    static constexpr std::string_view kind = "attention", what = "causal multi-head self-attention, fused";
    static constexpr std::string_view example = "b1h20s1024d64";
    static constexpr Direction directions[] = {Direction::fwd};

    AttentionShape shape;
    double scale;
    bool operator==(const Attention&) const = default;

    /// Scaled by 1 / sqrt(head size).
    static Attention parse(ShapeText& text) {
        const AttentionShape shape = AttentionShape::parse(text);
        return {shape, 1 / std::sqrt(static_cast<double>(shape.head_size))};
    }
    std::string text() const { return shape.text(); }
    std::vector<OperandSpec> operands(Direction) const { return {shape.qkv(), shape.out()}; }
    static RoofUnit unit(Direction) { return RoofUnit::matrix; }
    /// A pair: 2 head_size for q k^T and as many for p v; scale, minus the maximum, exp, add to the sum. A query: its
    /// output divided by the sum.
    Work work(Direction) const {
        const auto size = static_cast<double>(shape.head_size);
        return {shape.causal_pairs() * (4 * size + 4) + shape.queries() * size};
    }
};

}  // namespace kbench
