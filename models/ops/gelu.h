// GELU in its tanh form (Hendrycks and Gimpel, 2016).
#pragma once

#include "kbench/op.h"

namespace kbench {

/// fwd: y = 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks and Gimpel, 2016). in: x; out: y.
/// bwd: dx = dy (s + 2 x u' s (1 - s)), s = 1 / (1 + e^(-2u)), so that y = x s. in: dy, which a product may hand on; x;
/// out: dx. All [rows, width].
struct Gelu {
    static constexpr std::string_view kind = "gelu", what = "GELU, tanh form";
    static constexpr std::string_view example = "r1024w5120[+bias]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    std::int64_t rows, width;
    bool operator==(const Gelu&) const = default;

    static Gelu parse(ShapeText& shape) { return on(shape.size('r'), shape.size('w')); }
    static Gelu on(std::int64_t rows, std::int64_t columns) { return {rows, columns}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction direction) const {
        if (direction == Direction::bwd)
            return {input("dy", rows, width), input("x", rows, width), output("dx", rows, width)};
        return {input("x", rows, width), output("out", rows, width)};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"dout", "x", "dx"}}}}; }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// fwd: x * x * x * 0.044715 + x: four; times sqrt(2/pi), tanh, plus 1, times 0.5, times x.
    /// bwd: x * x, times 0.044715, plus 1, times x and -2 sqrt(2/pi), exponential, plus 1, reciprocal: eight; 1 - s;
    /// 2 u', from 0.044715 x^2: three; times x, times s, times 1 - s, plus s, times dy.
    Work work(Direction direction) const {
        return {(direction == Direction::bwd ? 17 : 9) * static_cast<double>(rows) * static_cast<double>(width)};
    }
    static std::vector<Fusion> fusions(Direction direction) {
        if (direction == Direction::bwd) return {};
        return {{.before = {"bias"}}};
    }
};

}  // namespace kbench
