// Turns images, whose width is time, into sequences of vectors.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y[t * batch + n, f] = x[n * features + f, t]: NCHW with time as its width becomes a sequence, time first, with
/// features numbered channel * height + row. fwd: in: x [batch * features, steps]; out: y [steps * batch, features].
/// bwd: the inverse permutation. in: dy as y; out: dx as x.
struct ToSequence {
    static constexpr std::string_view kind = "to_sequence", what = "time moved to the front, features to the end";
    static constexpr std::string_view example = "n8f1312t500";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t batch, features, steps;
    bool operator==(const ToSequence&) const = default;

    static ToSequence parse(ShapeText& shape) { return {shape.size('n'), shape.size('f'), shape.size('t')}; }
    std::string text() const { return shape_text({{'n', batch}, {'f', features}, {'t', steps}}); }
    std::vector<OperandSpec> operands(Direction direction) const {
        if (direction == Direction::bwd)
            return {input("dy", steps * batch, features), output("dx", batch * features, steps)};
        return {input("x", batch * features, steps), output("out", steps * batch, features)};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"dout", "dx"}}}}; }
    Grown<ToSequence> grown(Direction, Scale factor) const {
        ToSequence op = *this;
        op.batch *= factor;
        return {op, "batch"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// It only moves numbers.
    Work work(Direction) const { return {0}; }
};

}  // namespace kbench
