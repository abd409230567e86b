// SwiGLU's gate, between the products of a gated layer (Shazeer, 2020, "GLU Variants Improve Transformer", eq. 5).
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y[r, c] = silu(gate_up[r, c]) * gate_up[r, width + c], silu(x) = x / (1 + exp(-x)): both products are made as one.
/// in: gate_up [rows, 2 * width]; out: y [rows, width].
struct SwiGlu {
    static constexpr std::string_view kind = "swiglu", what = "SwiGLU's gate: silu of one half times the other";
    static constexpr std::string_view example = "r4096w8192";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, width;
    bool operator==(const SwiGlu&) const = default;

    static SwiGlu parse(ShapeText& shape) { return {shape.size('r'), shape.size('w')}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction) const {
        return {input("gate_up", rows, 2 * width), output("out", rows, width)};
    }
    Grown<SwiGlu> grown(Direction, Scale factor) const {
        SwiGlu op = *this;
        op.rows *= factor;
        return {op, "rows"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// Exponential, plus 1, divide, times.
    Work work(Direction) const { return {4 * static_cast<double>(rows) * static_cast<double>(width)}; }
};

}  // namespace kbench
