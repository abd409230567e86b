// Layer normalisation (Ba et al., 2016).
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y = (x - mean) * rstd * weight + bias over each row, rstd = 1 / sqrt(variance + epsilon), biased variance
/// (Ba et al., 2016, eq. 3).
/// in: x [rows, width], weight [width], bias [width]; out: y [rows, width].
struct LayerNorm {
    static constexpr std::string_view kind = "layernorm", what = "layer normalisation over the last dimension";
    static constexpr std::string_view example = "r1024w1280[+bias][+residual]";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, width;
    double epsilon = 1e-5;
    bool operator==(const LayerNorm&) const = default;

    static LayerNorm parse(ShapeText& shape) { return {shape.size('r'), shape.size('w')}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction) const {
        return {input("x", rows, width), weight("weight", width), weight("bias", width), output("out", rows, width)};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// An element: add to the mean, subtract it, square, add, times rstd, times weight, plus bias. A row: two divisions
    /// by the width, plus epsilon, root, reciprocal.
    Work work(Direction) const { return {static_cast<double>(rows) * (7 * static_cast<double>(width) + 5)}; }
    static std::vector<Fusion> fusions() { return {{.before = {"bias", "residual"}}, {.before = {"residual"}}}; }
};

}  // namespace kbench
