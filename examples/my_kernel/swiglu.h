// An op kind of one's own: SwiGLU's gate (Shazeer, 2020, "GLU Variants Improve Transformer", eq. 5), which kbench does
// not have. Every function here is one that kbench asks of an op kind; leave one out and it does not compile.
#pragma once

#include <kbench/kernel.h>

#include <cmath>

/// out[r, c] = silu(gate_up[r, c]) * gate_up[r, width + c], silu(x) = x / (1 + exp(-x)).
/// in: gate_up [rows, 2 * width]; out: [rows, width].
struct SwiGlu {
    static constexpr std::string_view kind = "swiglu", what = "SwiGLU's gate: silu of one half times the other";
    static constexpr std::string_view example = "r4096w11008";
    static constexpr kbench::Direction directions[] = {kbench::Direction::fwd};

    std::int64_t rows, width;
    bool operator==(const SwiGlu&) const = default;

    static SwiGlu parse(kbench::ShapeText& shape) { return {shape.size('r'), shape.size('w')}; }
    std::string text() const { return kbench::shape_text({{'r', rows}, {'w', width}}); }
    std::vector<kbench::OperandSpec> operands(kbench::Direction) const {
        return {kbench::input("gate_up", rows, 2 * width), kbench::output("out", rows, width)};
    }
    static kbench::RoofUnit unit(kbench::Direction) { return kbench::RoofUnit::plain; }
    /// Minus, exp, plus 1, divide, times.
    kbench::Work work(kbench::Direction) const { return {5 * static_cast<double>(rows) * static_cast<double>(width)}; }
};
