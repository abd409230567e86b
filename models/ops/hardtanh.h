// The clipped linear unit.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y = min(max(x, low), high), PyTorch's Hardtanh(low, high); with low 0 the clipped rectifier of Hannun et al. (2014,
/// arXiv:1412.5567, section 2). fwd: in: x; out: y [rows, width].
/// bwd: dx = dy where low < y < high, else 0, as PyTorch has it at both ends. in: y, dy; out: dx [rows, width].
struct Hardtanh {
    static constexpr std::string_view kind = "hardtanh", what = "clipping to a range";
    static constexpr std::string_view example = "r10000w500";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, width;
    double low = 0, high = 20;
    bool operator==(const Hardtanh&) const = default;

    static Hardtanh parse(ShapeText& shape) { return on(shape.size('r'), shape.size('w')); }
    static Hardtanh on(std::int64_t rows, std::int64_t columns) { return {rows, columns}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    /// Data lies on both sides of both bounds.
    std::vector<OperandSpec> operands(Direction direction) const {
        OperandSpec x = input("x", rows, width);
        x.contents = Contents::normal((high - low) / 2, (low + high) / 2);
        if (direction == Direction::fwd) return {x, output("out", rows, width)};
        x.name = "y";
        return {x, input("dy", rows, width), output("dx", rows, width)};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"out", "dout", "dx"}}}}; }
    Grown<Hardtanh> grown(Direction, Scale factor) const {
        Hardtanh op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// A minimum and a maximum, each one instruction as an addition is; backward two comparisons.
    Work work(Direction) const { return {2 * static_cast<double>(rows) * static_cast<double>(width)}; }
};

}  // namespace kbench
