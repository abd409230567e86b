// The scale and the causal mask of unfused attention, in place.
#pragma once

#include "kbench/attention_shape.h"

namespace kbench {

/// scores[i, j] = scale * scores[i, j] where j <= i (i counted within its head), minus infinity elsewhere. In place.
/// in: scores [batch * heads * seq, seq]; out: the same.
struct ScaleMask {
    static constexpr std::string_view kind = "scale_mask", what = "scale and causal mask (unfused attention)";
    static constexpr std::string_view example = "b1h20s1024d64[+upcast]";
    static constexpr Direction directions[] = {Direction::fwd};

    AttentionShape shape;
    double scale;
    bool upcast;
    bool operator==(const ScaleMask&) const = default;

    /// Scale is -1: applied in place again and again, it does not change the magnitude of the data.
    static ScaleMask parse(ShapeText& text) {
        const AttentionShape shape = AttentionShape::parse(text);
        return {shape, -1, text.suffix("upcast")};
    }
    std::string text() const { return shape.text() + (upcast ? "+upcast" : ""); }
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec scores = shape.scores("scores", OperandUse::in_place, upcast);
        scores.read = Part{static_cast<double>(scores.rows), 0, scores.columns,
                           shape.causal_pairs() / (shape.queries() * static_cast<double>(shape.seq))};
        return {scores};
    }
    /// More sequences: rows of the same scores.
    Grown<ScaleMask> grown(Direction, Scale factor) const {
        ScaleMask op = *this;
        op.shape.batch *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    Work work(Direction) const { return {shape.causal_pairs()}; }
};

}  // namespace kbench
