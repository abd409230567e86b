// GELU in its tanh form (Hendrycks and Gimpel, 2016).
#pragma once

#include "kbench/op.h"

namespace kbench {

/// y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016). in: x; out: y, [rows, width].
struct Gelu {
    static constexpr std::string_view kind = "gelu", what = "GELU, tanh form";
    static constexpr std::string_view example = "r1024w5120[+bias]";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t rows, width;
    bool operator==(const Gelu&) const = default;

    static Gelu parse(ShapeText& shape) { return on(shape.size('r'), shape.size('w')); }
    static Gelu on(std::int64_t rows, std::int64_t columns) { return {rows, columns}; }
    std::string text() const { return shape_text({{'r', rows}, {'w', width}}); }
    std::vector<OperandSpec> operands(Direction) const { return {input("x", rows, width), output("out", rows, width)}; }
    static RoofUnit unit(Direction) { return RoofUnit::plain; }
    /// x * x * x * 0.044715 + x: four; times sqrt(2/pi), tanh, plus 1, times 0.5, times x.
    Work work(Direction) const { return {9 * static_cast<double>(rows) * static_cast<double>(width)}; }
    static std::vector<Fusion> fusions() { return {{.before = {"bias"}}}; }
};

}  // namespace kbench
