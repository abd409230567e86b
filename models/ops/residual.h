// The addition of the residual stream.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// fwd: y = x + residual. in: x, residual; out: y.
/// bwd: dx = dy + dy_residual. Both inputs of the forward have y's gradient unchanged; where the stream feeds two ops,
/// its gradient is the sum of theirs. in: dy, dy_residual; out: dx. All [rows, width].
struct ResidualAdd {
    static constexpr std::string_view kind = "residual", what = "addition of the residual stream";
    static constexpr std::string_view example = "r1024w1280";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, width;
    bool operator==(const ResidualAdd&) const = default;

    static ResidualAdd parse(ShapeText& shape) { return on(shape.size('r'), shape.size('w')); }
    static ResidualAdd on(std::int64_t rows, std::int64_t columns) { return {rows, columns}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction direction) const {
        if (direction == Direction::bwd)
            return {input("dy", rows, width), input("dy_residual", rows, width), output("dx", rows, width)};
        return {input("x", rows, width), input("residual", rows, width), output("out", rows, width)};
    }
    static Gradients gradients() { return {{}, {"x", "residual"}}; }
    Grown<ResidualAdd> grown(Direction, Scale factor) const {
        ResidualAdd op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    Work work(Direction) const { return {static_cast<double>(rows) * static_cast<double>(width)}; }
};

}  // namespace kbench
