// Causal multi-head self-attention as one op, and its backward (Vaswani et al., 2017; Dao et al., 2022).
#pragma once

#include <cmath>

#include "kbench/attention_shape.h"

namespace kbench {

/// fwd: out = softmax(scale * q k^T, causal) v for each batch and head (Vaswani et al., 2017, eq. 1).
/// in: qkv; out: lse [batch * heads, seq] (with `saves_lse`), then out [batch * seq, heads * head_size], heads side by
/// side. lse holds log(sum of exp(scale * q k)) for each query, in fp32 or wider: backward recomputes the probabilities
/// from it.
/// bwd (Dao et al., FlashAttention, 2022, algorithm 4): with P = exp(scale * q k^T - lse), causal, D the sum of
/// dout * out over a head's columns, and dS = P * (dout v^T - D):
/// dq = scale * dS k, dk = scale * dS^T q, dv = P^T dout.
/// in: qkv, out, dout [batch * seq, heads * head_size], lse; out: dqkv, laid out as qkv.
struct Attention {
    static constexpr std::string_view kind = "attention", what = "causal multi-head self-attention, fused";
    static constexpr std::string_view example = "b1h20s1024d64[l]";
    static constexpr Direction directions[] = {Direction::fwd, Direction::bwd};

    AttentionShape shape;
    double scale;
    bool saves_lse = false;  ///< for fwd; bwd always reads the lse
    bool operator==(const Attention&) const = default;

    /// Scale is 1 / sqrt(head size).
    static Attention parse(ShapeText& text) {
        const AttentionShape shape = AttentionShape::parse(text);
        return {shape, 1 / std::sqrt(static_cast<double>(shape.head_size)), text.flag('l')};
    }
    std::string text() const { return shape.text() + (saves_lse ? "l" : ""); }
    std::vector<OperandSpec> operands(Direction direction) const {
        OperandSpec lse = output("lse", shape.batch * shape.heads, shape.seq);
        lse.element = ElementType::at_least_fp32;
        if (direction == Direction::bwd) {
            lse.use = OperandUse::input;
            lse.contents = Contents::normal(0.1, lse_of_normal_numbers());
            OperandSpec out = input("out", shape.rows(), shape.width());
            out.contents = Contents::normal(1 / std::sqrt(static_cast<double>(shape.seq)));
            return {shape.qkv(), out, input("dout", shape.rows(), shape.width()), lse,
                    output("dqkv", shape.rows(), 3 * shape.width())};
        }
        if (saves_lse) return {shape.qkv(), lse, shape.out()};
        return {shape.qkv(), shape.out()};
    }
    static Gradients gradients() { return {{{Direction::bwd, {"qkv", "out", "dout", "lse", "dqkv"}}}}; }
    Attention in_training() const { return {shape, scale, true}; }
    Grown<Attention> grown(Direction, Scale factor) const {
        Attention op = *this;
        op.shape.seq *= factor;
        return {op, "seq"};
    }
    static RoofUnit unit(Direction) { return RoofUnit::matrix; }
    /// fwd, per pair: 2 head_size for q k^T, as many for p v; scale, minus the maximum, exp, add to the sum. Per query:
    /// its output divided by the sum; for lse the logarithm, and the maximum added.
    /// bwd, per pair: 2 head_size each for q k^T, dout v^T, dS k, dS^T q and P^T dout; scale, minus lse, exp, minus D,
    /// times P. Per query: 2 head_size for D; dq and dk times the scale.
    /// Its products are those of the visible pairs: a kernel skips tiles above the diagonal, and what it computes of
    /// those on it is more. A backward of two kernels makes two of the five products twice.
    Work work(Direction direction) const {
        return work_of(direction, shape.causal_pairs(), shape.queries(), shape.head_size, saves_lse);
    }
    /// The same with any number of visible pairs: attention need not be causal.
    static Work work_of(Direction direction, double pairs, double queries, std::int64_t head_size, bool saves_lse) {
        const auto size = static_cast<double>(head_size);
        if (direction == Direction::bwd) return {pairs * (10 * size + 5) + queries * 4 * size, pairs * 10 * size};
        return {pairs * (4 * size + 4) + queries * (size + (saves_lse ? 2 : 0)), pairs * 4 * size};
    }

  private:
    /// Approximate lse of a query over all keys where qkv holds normal numbers. n scores of deviation s: ln n + s^2 / 2
    /// while n is so large that no single score dominates, else s sqrt(2 ln n) (Derrida, Phys. Rev. B 24, 1981). Random
    /// data must be near it: with a much smaller lse, P could exceed 1 and leave the range of fp16.
    double lse_of_normal_numbers() const {
        const double deviation = scale * std::sqrt(static_cast<double>(shape.head_size));
        const double keys = std::log(static_cast<double>(shape.seq)), most = std::sqrt(2 * keys);
        return deviation < most ? keys + deviation * deviation / 2 : deviation * most;
    }
};

}  // namespace kbench
