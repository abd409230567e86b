// Layer normalisation (Ba et al., 2016).
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y = (x - mean) * rstd * weight + bias over each row, rstd = 1 / sqrt(variance + epsilon), biased variance
/// (Ba et al., 2016, eq. 3).
/// fwd: in: x [rows, width], weight [width], bias [width]; out: y [rows, width].
/// bwd: with n = (x - mean) * rstd and g = dy * weight, dx = rstd (g - mean(g) - n mean(g n)), means over the row;
/// dw = sum of dy n and db = sum of dy over the rows. mean and rstd are recomputed, not saved by the forward.
/// in: x, dy [rows, width], weight [width]; out: dx [rows, width], dw, db [width]. `accumulates`: the sums are added in
/// place to what dw and db hold.
struct LayerNorm {
    static constexpr std::string_view kind = "layernorm", what = "layer normalisation over the last dimension";
    static constexpr std::string_view example = "r1024w1280[a][+bias][+residual]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, width;
    double epsilon = 1e-5;
    bool accumulates = false;
    bool operator==(const LayerNorm&) const = default;

    static LayerNorm parse(ShapeText& shape) {
        return {.rows = shape.size('r'), .width = shape.size('w'), .accumulates = shape.flag('a')};
    }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}) + (accumulates ? "a" : ""); }
    std::vector<OperandSpec> operands(Direction direction) const {
        if (direction == Direction::bwd) {
            OperandSpec dw = output("dw", 1, width), db = output("db", 1, width);
            if (accumulates) dw.use = db.use = OperandUse::in_place;
            return {input("x", rows, width),
                    input("dy", rows, width),
                    weight("weight", width),
                    output("dx", rows, width),
                    dw,
                    db};
        }
        return {input("x", rows, width), weight("weight", width), weight("bias", width), output("out", rows, width)};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"x", "dout", "weight", "dx", "dweight", "dbias"}}}}; }
    LayerNorm accumulating() const { return {rows, width, epsilon, true}; }
    Grown<LayerNorm> grown(Direction, Scale factor) const {
        LayerNorm op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// Per element: add to the mean, subtract it, square, add, times rstd, times weight, plus bias. Per row: divisions
    /// by the width (two), plus epsilon, root, reciprocal.
    /// Backward, per element: the same four for mean and rstd, times rstd (n); g, add to its mean, times n, add to that
    /// mean; g less its mean, less n times the other, times rstd: four; dy n, and two additions to the rows' sums. Per
    /// row: five, and two divisions.
    Work work(Direction direction) const {
        const double elements = static_cast<double>(rows) * static_cast<double>(width);
        return {direction == Direction::bwd ? 16 * elements + 7 * static_cast<double>(rows)
                                            : 7 * elements + 5 * static_cast<double>(rows)};
    }
    /// Backward, a residual after it adds the gradient that bypasses the layer norm.
    static std::vector<Fusion> fusions(Direction direction) {
        if (direction == Direction::bwd) return {{.after = {"residual"}}};
        return {{.before = {"bias", "residual"}}, {.before = {"residual"}}};
    }
};

}  // namespace kbench
