// Root mean square normalisation with a weight (Zhang and Sennrich, 2019): layer norm without mean and bias.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y = x * rstd * weight over each row, rstd = 1 / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich, "Root Mean Square
/// Layer Normalization", NeurIPS 2019, eq. 4, with the epsilon that its implementations add).
/// in: x [rows, width], weight [width]; out: y [rows, width].
struct RmsNorm {
    static constexpr std::string_view kind = "rmsnorm", what = "root mean square normalisation, with a weight";
    static constexpr std::string_view example = "r4096w4096";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, width;
    double epsilon = 1e-6;
    bool operator==(const RmsNorm&) const = default;

    static RmsNorm parse(ShapeText& shape) { return {shape.size('r'), shape.size('w')}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction) const {
        return {input("x", rows, width), weight("weight", width), output("out", rows, width)};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// An element: square, add, times rstd, times weight. A row: divide by the width, plus epsilon, root, reciprocal.
    Work work(Direction) const { return {static_cast<double>(rows) * (4 * static_cast<double>(width) + 4)}; }
};

}  // namespace kbench
