// The matrix product with a weight, and its two gradients.
#pragma once

#include <cmath>

#include "kbench/activation.h"
#include "kbench/op.h"

namespace kbench {

/// fwd: y = x · w. in: x [m, k], w [k, n], or [n, k] when `weight_transposed`; out: y [m, n].
/// dgrad: dx = dy · w^T. in: dy [m, n], w; out: dx [m, k].
/// wgrad: dw = x^T · dy. in: x [m, k], dy [m, n]; out: dw, of w's shape (if transposed, dy^T · x). `accumulates`: the
/// product is added in place to what dw holds. With padded columns, rows of zeros follow a transposed w and zeros fill
/// up dy's rows, so that all three products have the padded size: in bf16 at m 4096 on an H200, dgrad with 50257
/// columns takes 9.0 ms, with 50304 0.7 ms.
struct Gemm {
    static constexpr std::string_view kind = "gemm", what = "matrix product with a weight";
    static constexpr std::string_view example = "m1024n3840k1280[t][a][+bias][+gelu or +residual]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::dgrad, Direction::wgrad};

    std::int64_t m, n, k;
    bool weight_transposed = false, accumulates = false;
    bool operator==(const Gemm&) const = default;

    /// What a direction multiplies: out [m, n] = left · right, row-major. left is [m, k], or [k, m] when transposed;
    /// right is [k, n], or [n, k]. Strides are the distances between rows in memory, in elements.
    struct Product {
        std::int64_t m, n, k;
        bool left_transposed, right_transposed;
        bool left_is_second;  ///< whether `left` is the op's second operand
        std::int64_t left_stride, right_stride, out_stride;
    };
    /// `padded_columns` is Step's. Unless 0, it replaces n, because y and dy have that many columns in memory.
    Product product(Direction direction, std::int64_t padded_columns = 0) const {
        const std::int64_t y = padded_columns > 0 ? padded_columns : n, w = weight_transposed ? k : n;
        switch (direction) {
            case Direction::dgrad: return {m, k, y, false, !weight_transposed, false, y, w, k};
            case Direction::wgrad:
                return weight_transposed ? Product{y, k, m, true, false, true, y, k, k}
                                         : Product{k, n, m, true, false, false, k, y, n};
            default: return {m, y, k, false, weight_transposed, false, k, w, y};
        }
    }

    static Gemm parse(ShapeText& shape) {
        return {shape.size('m'), shape.size('n'), shape.size('k'), shape.flag('t'), shape.flag('a')};
    }
    std::string text() const {
        return shape_text({{'m', m}, {'n', n}, {'k', k}}) + (weight_transposed ? "t" : "") + (accumulates ? "a" : "");
    }
    /// The factor of x or dy is scaled so that outputs stay near 1.
    std::vector<OperandSpec> operands(Direction direction) const {
        const Contents near_one = Contents::normal(1 / std::sqrt(static_cast<double>(product(direction).k)));
        OperandSpec w = weight_transposed ? input("w", n, k) : input("w", k, n);
        w.use = OperandUse::weight;
        w.contents = near_one;
        w.rows_are_columns = weight_transposed;
        OperandSpec dy = input("dy", m, n), out = output("out", m, n);
        dy.padded = out.padded = weight_transposed;
        switch (direction) {
            case Direction::dgrad: return {dy, w, output("dx", m, k)};
            case Direction::wgrad:
                dy.contents = near_one;
                w.name = "dw";
                w.use = accumulates ? OperandUse::in_place : OperandUse::output;
                w.contents = {};
                return {input("x", m, k), dy, w};
            default: return {input("x", m, k), w, out};
        }
    }
    static Gradients gradients() {
        return {{{Direction::wgrad, {"x", "dout", "dw"}}, {Direction::dgrad, {"dout", "w", "dx"}}}};
    }
    Gemm accumulating() const { return {m, n, k, weight_transposed, true}; }
    /// The dimension that the product sums over: as many tiles of the result, each made in a longer loop.
    Grown<Gemm> grown(Direction direction, Scale factor) const {
        Gemm op = *this;
        (direction == Direction::dgrad ? op.n : direction == Direction::wgrad ? op.m : op.k) *= factor;
        return {op, "k"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::matrix; }
    Work work(Direction) const {
        const double flops = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
        return {flops, flops};
    }
    static std::vector<Fusion> fusions(Direction direction) {
        if (direction == Direction::wgrad) return {{.beside = {"bias"}}};
        std::vector<Fusion> fusions;
        if (direction == Direction::fwd) fusions = {{.after = {"bias", "residual"}}, {.after = {"bias"}}};
        for (const ActivationFacts& activation : activation_table) {
            if (direction == Direction::fwd) fusions.push_back({.after = {"bias", activation.kind}});
            fusions.push_back({.after = {activation.kind}});
        }
        if (direction == Direction::fwd) fusions.push_back({.after = {"residual"}});
        return fusions;
    }
    bool pads_columns() const { return weight_transposed; }
};

}  // namespace kbench
