// The last token of each sequence, whose logits are all that the first new token needs.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// out[b, :] = x[b * seq + seq - 1, :]. in: x [batch * seq, width]; out: out [batch, width].
struct LastToken {
    static constexpr std::string_view kind = "last_token", what = "the last token's row of each sequence";
    static constexpr std::string_view example = "b16s1024w1280";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t batch, seq, width;
    bool operator==(const LastToken&) const = default;

    static LastToken parse(ShapeText& shape) { return {shape.size('b'), shape.size('s'), shape.size('w')}; }
    std::string text() const { return shape_text({{'b', batch}, {'s', seq}, {'w', width}}); }
    std::int64_t row_of(std::int64_t sequence) const { return sequence * seq + seq - 1; }
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec x = input("x", batch * seq, width);
        x.read = Part{static_cast<double>(batch), 0, width};
        return {x, output("out", batch, width)};
    }
    Grown<LastToken> grown(Direction, Scale factor) const {
        LastToken op = *this;
        op.batch *= factor;
        return {op, "batch"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// It only moves numbers.
    Work work(Direction) const { return {0}; }
};

}  // namespace kbench
