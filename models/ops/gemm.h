// The matrix product with a weight.
#pragma once

#include <cmath>

#include "kbench/op.h"

namespace kbench {

/// y = x · w. in: x [m, k], w [k, n], or [n, k] when `weight_transposed`; out: y [m, n].
/// With padded columns the rows of a transposed w are followed by as many rows of zeros.
struct Gemm {
    static constexpr std::string_view kind = "gemm", what = "matrix product with a weight";
    static constexpr std::string_view example = "m1024n3840k1280[t][+bias][+gelu or +residual]";
    static constexpr Direction directions[] = {Direction::fwd};

    std::int64_t m, n, k;
    bool weight_transposed = false;
    bool operator==(const Gemm&) const = default;

    static Gemm parse(ShapeText& shape) { return {shape.size('m'), shape.size('n'), shape.size('k'), shape.flag('t')}; }
    std::string text() const { return shape_text({{'m', m}, {'n', n}, {'k', k}}) + (weight_transposed ? "t" : ""); }
    /// Weights of the size that keeps outputs near 1.
    std::vector<OperandSpec> operands(Direction) const {
        OperandSpec w = weight_transposed ? input("w", n, k) : input("w", k, n);
        w.use = OperandUse::weight;
        w.contents = Contents::normal(1 / std::sqrt(static_cast<double>(k)));
        w.rows_are_columns = weight_transposed;
        return {input("x", m, k), w, output("out", m, n)};
    }
    static RoofUnit unit(Direction) { return RoofUnit::matrix; }
    Work work(Direction) const {
        const double flops = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
        return {flops, flops};
    }
    static std::vector<Fusion> fusions() {
        return {{.after = {"bias", "residual"}},
                {.after = {"bias", "gelu"}},
                {.after = {"bias"}},
                {.after = {"gelu"}},
                {.after = {"residual"}}};
    }
    bool pads_columns() const { return weight_transposed; }
};

}  // namespace kbench
