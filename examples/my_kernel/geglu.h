// An op kind of one's own: GEGLU's gate (Shazeer, 2020, "GLU Variants Improve Transformer", eq. 5), which kbench does
// not have. Every function here is one that kbench asks of an op kind; leave one out and it does not compile.
#pragma once

#include <kbench/kernel.h>

#include <cmath>

/// out[r, c] = gelu(gate_up[r, c]) * gate_up[r, width + c], gelu(x) = x (1 + erf(x / sqrt(2))) / 2.
/// in: gate_up [rows, 2 * width]; out: [rows, width].
struct GeGlu {
    static constexpr std::string_view kind = "geglu", what = "GEGLU's gate: GELU of one half times the other";
    static constexpr std::string_view example = "r4096w11008";
    static constexpr kbench::Direction directions[] = {kbench::Direction::fwd};

    std::int64_t rows, width;
    bool operator==(const GeGlu&) const = default;

    static GeGlu parse(kbench::ShapeText& shape) { return {shape.size('r'), shape.size('w')}; }
    std::string text() const { return kbench::shape_text({{'r', rows}, {'w', width}}); }
    std::vector<kbench::OperandSpec> operands(kbench::Direction) const {
        return {kbench::input("gate_up", rows, 2 * width), kbench::output("out", rows, width)};
    }
    static kbench::RoofUnit unit(kbench::Direction) { return kbench::RoofUnit::plain; }
    /// Divide, erf, plus 1, and three products.
    kbench::Work work(kbench::Direction) const { return {6 * static_cast<double>(rows) * static_cast<double>(width)}; }
};
