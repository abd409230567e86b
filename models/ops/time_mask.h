// Writes zeros after the end of each sequence of a batch.
#pragma once

#include "kbench/lengths.h"

namespace kbench {

/// y = x where a column (time) is below steps_of(lengths[n], frames_per_step), else 0, so that results computed from a
/// sequence's padding never reach its other steps.
/// fwd: in: x [batch * rows_each, steps], lengths [batch, 1] int32; out: y as x. Row r is in sequence r / rows_each.
/// bwd: the same for gradients. in: dy as y, lengths; out: dx as x.
struct TimeMask {
    static constexpr std::string_view kind = "time_mask", what = "zeros behind the end of each sequence";
    static constexpr std::string_view example = "n8r2592t500[f2]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t batch, rows_each, steps, frames_per_step = 1;
    bool operator==(const TimeMask&) const = default;

    static TimeMask parse(ShapeText& shape) {
        return {shape.size('n'), shape.size('r'), shape.size('t'), shape.size_or('f', 1)};
    }
    /// The mask of a single sequence.
    static TimeMask on(std::int64_t rows, std::int64_t columns) { return {1, rows, columns}; }
    std::string text() const {
        std::string text = shape_text({{'n', batch}, {'r', rows_each}, {'t', steps}});
        if (frames_per_step != 1) text += shape_text({{'f', frames_per_step}});
        return text;
    }
    std::vector<OperandSpec> operands(Direction direction) const {
        const bool is_backward = direction == Direction::bwd;
        return {input(is_backward ? "dy" : "x", batch * rows_each, steps),
                lengths_operand(batch, steps * frames_per_step),
                output(is_backward ? "dx" : "out", batch * rows_each, steps)};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"dout", "lengths", "dx"}}}}; }
    Grown<TimeMask> grown(Direction, Scale factor) const {
        TimeMask op = *this;
        op.batch *= factor;
        return {op, "batch"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// It only moves numbers.
    Work work(Direction) const { return {0}; }
};

}  // namespace kbench
