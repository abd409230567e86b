// Probabilities times v: the second product of unfused attention.
#pragma once

#include "kbench/attention_shape.h"

namespace kbench {

/// out = probabilities · v for each batch and head. in: probabilities [batch * heads * seq, seq], qkv;
/// out: [batch * seq, heads * head_size].
struct AttentionContext {
    static constexpr std::string_view kind = "attention_context", what = "probabilities times v (unfused attention)";
    static constexpr std::string_view example = "b1h20s1024d64";
    static constexpr Direction directions[] = {Direction::fwd};

    AttentionShape shape;
    bool operator==(const AttentionContext&) const = default;

    static AttentionContext parse(ShapeText& text) { return {AttentionShape::parse(text)}; }
    std::string text() const { return shape.text(); }
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec qkv = shape.qkv();
        qkv.read = Part{static_cast<double>(qkv.rows), 2 * shape.width(), 3 * shape.width()};  // v
        return {shape.scores("probabilities", OperandUse::input, false), qkv, shape.out()};
    }
    Grown<AttentionContext> grown(Direction, Scale factor) const {
        AttentionContext op = *this;
        op.shape.seq *= factor;
        return {op, "seq"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::matrix; }
    /// The full square: this product ignores the mask and multiplies masked zeros, too.
    Work work(Direction) const { return shape.product_work(); }
};

}  // namespace kbench
