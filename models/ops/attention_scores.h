// q k^T of every head: the first product of unfused attention.
#pragma once

#include "kbench/attention_shape.h"

namespace kbench {

/// scores[b, h, i, j] = q_i · k_j for all pairs. in: qkv; out: scores [batch * heads * seq, seq].
/// `upcast`: scores are stored in fp32 whatever the precision (Hugging Face's reorder_and_upcast_attn).
struct AttentionScores {
    static constexpr std::string_view kind = "attention_scores", what = "q k^T of every head (unfused attention)";
    static constexpr std::string_view example = "b1h20s1024d64[+upcast]";
    static constexpr Direction directions[] = {Direction::fwd};

    AttentionShape shape;
    bool upcast;
    bool operator==(const AttentionScores&) const = default;

    static AttentionScores parse(ShapeText& text) {
        const AttentionShape shape = AttentionShape::parse(text);
        return {shape, text.suffix("upcast")};
    }
    std::string text() const { return shape.text() + (upcast ? "+upcast" : ""); }
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec qkv = shape.qkv();
        qkv.read = Part{static_cast<double>(qkv.rows), 0, 2 * shape.width()};  // q and k
        return {qkv, shape.scores("scores", OperandUse::output, upcast)};
    }
    Grown<AttentionScores> grown(Direction, Scale factor) const {
        AttentionScores op = *this;
        op.shape.seq *= factor;
        return {op, "seq"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::matrix; }
    /// The full square: this product ignores the mask and computes scores that are discarded later.
    Work work(Direction) const { return shape.product_work(); }
};

}  // namespace kbench
