// Root mean square normalisation with a weight (Zhang and Sennrich, 2019): layer norm without mean and bias.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y = x * rstd * weight over each row, rstd = 1 / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich, "Root Mean Square
/// Layer Normalization", NeurIPS 2019, eq. 4, with the epsilon that its implementations add).
/// fwd: in: x [rows, width], weight [width]; out: y [rows, width].
/// bwd: with n = x * rstd and g = dy * weight, dx = rstd (g - n mean(g n)), the mean over the row; dw = sum of dy n
/// over the rows. rstd is recomputed. in: x, dy [rows, width], weight [width]; out: dx [rows, width], dw [width].
/// `accumulates`: the sum is added in place to what dw holds.
struct RmsNorm {
    static constexpr std::string_view kind = "rmsnorm", what = "root mean square normalisation, with a weight";
    static constexpr std::string_view example = "r4096w4096[a]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, width;
    double epsilon = 1e-6;
    bool accumulates = false;
    bool operator==(const RmsNorm&) const = default;

    static RmsNorm parse(ShapeText& shape) {
        return {.rows = shape.size('r'), .width = shape.size('w'), .accumulates = shape.flag('a')};
    }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}) + (accumulates ? "a" : ""); }
    std::vector<OperandSpec> operands(Direction direction) const {
        if (direction == Direction::bwd) {
            OperandSpec dw = output("dw", 1, width);
            if (accumulates) dw.use = OperandUse::in_place;
            return {input("x", rows, width), input("dy", rows, width), weight("weight", width),
                    output("dx", rows, width), dw};
        }
        return {input("x", rows, width), weight("weight", width), output("out", rows, width)};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"x", "dout", "weight", "dx", "dweight"}}}}; }
    RmsNorm accumulating() const { return {rows, width, epsilon, true}; }
    Grown<RmsNorm> grown(Direction, Scale factor) const {
        RmsNorm op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// Per element: square, add, times rstd, times weight. Per row: divide by width, plus epsilon, root, reciprocal.
    /// Backward, per element: square, add, times rstd (n); g, times n, add; less n times the mean, times rstd: three;
    /// dy n, and add to the rows' sum. Per row: four, and a division.
    Work work(Direction direction) const {
        const double elements = static_cast<double>(rows) * static_cast<double>(width);
        return {direction == Direction::bwd ? 11 * elements + 5 * static_cast<double>(rows)
                                            : 4 * elements + 4 * static_cast<double>(rows)};
    }
};

}  // namespace kbench
