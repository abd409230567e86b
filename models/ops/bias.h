// A bias that is added to each row.
#pragma once

#include "kbench/op.h"

namespace kbench {

/// fwd: y[r, c] = x[r, c] + bias[c]. in: x [rows, width], bias [width]; out: y [rows, width].
/// bwd: db[c] = sum over r of dy[r, c]; x's gradient is dy itself. in: dy [rows, width]; out: db [width].
/// `accumulates`: the sum is added in place to what db holds.
struct BiasAdd {
    static constexpr std::string_view kind = "bias", what = "bias added to each row";
    static constexpr std::string_view example = "r1024w3840[a]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, width;
    bool accumulates = false;
    bool operator==(const BiasAdd&) const = default;

    static BiasAdd parse(ShapeText& shape) { return {shape.size('r'), shape.size('w'), shape.flag('a')}; }
    static BiasAdd on(std::int64_t rows, std::int64_t columns) { return {rows, columns}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}) + (accumulates ? "a" : ""); }
    std::vector<OperandSpec> operands(Direction direction) const {
        if (direction == Direction::bwd) {
            OperandSpec db = output("db", 1, width);
            if (accumulates) db.use = OperandUse::in_place;
            return {input("dy", rows, width), db};
        }
        return {input("x", rows, width), weight("bias", width), output("out", rows, width)};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"dout", "dbias"}}}, {"x"}}; }
    BiasAdd accumulating() const { return {rows, width, true}; }
    Grown<BiasAdd> grown(Direction, Scale factor) const {
        BiasAdd op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    Work work(Direction) const { return {static_cast<double>(rows) * static_cast<double>(width)}; }
};

}  // namespace kbench
