// From images, whose width is time, to sequences of vectors.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y[t * batch + n, f] = x[n * features + f, t]: NCHW with time as its width becomes a sequence, time first, whose
/// features are channel * height + row. in: x [batch * features, steps]; out: y [steps * batch, features].
struct ToSequence {
    static constexpr std::string_view kind = "to_sequence", what = "time moved to the front, features to the end";
    static constexpr std::string_view example = "n8f1312t500";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t batch, features, steps;
    bool operator==(const ToSequence&) const = default;

    static ToSequence parse(ShapeText& shape) { return {shape.size('n'), shape.size('f'), shape.size('t')}; }
    std::string text() const { return shape_text({{'n', batch}, {'f', features}, {'t', steps}}); }
    std::vector<OperandSpec> operands(Direction) const {
        return {input("x", batch * features, steps), output("out", steps * batch, features)};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// It moves numbers.
    Work work(Direction) const { return {0}; }
};

}  // namespace kbench
