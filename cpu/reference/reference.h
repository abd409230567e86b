// The oracle: every op as plain fp64 loops, on inputs of any stored type, at chosen output elements.
// Slow on purpose and easy to read; nothing here is tuned except that elements of one row share their work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/op.h"

namespace kbench::reference {

/// A row-major matrix of any stored type, read as fp64. `stride` is the distance of rows in elements.
struct View {
    const void* data = nullptr;
    DataType type = DataType::fp64;
    std::int64_t rows = 0, columns = 0, stride = 0;
    double operator()(std::int64_t row, std::int64_t column) const;
    explicit operator bool() const { return data != nullptr; }
};

/// An element of a step's output.
struct Element {
    std::int64_t row, column;
    auto operator<=>(const Element&) const = default;
};

/// What the element should be, and what is needed to bound the error of any floating-point way to compute it.
struct Expected {
    double value;
    /// The value's sum with every term replaced by its absolute value: for gemm, sum of |x w| + |bias| + ...; for
    /// attention, sum of p |v|; after a nonlinear function f, the magnitude of its argument times a bound on |f'|.
    double magnitude;
    /// Terms of the longest sum.
    std::int64_t terms;
    /// How far a rounding of one unit in each of many places moves the value, roundings being independent: the root of
    /// the sum of squares of their single effects. `carried`: rounded sums whose error passes through a nonlinear
    /// function (scores through softmax); `inner`: factors made inside the op and rounded to the multiplier's format
    /// (softmax's p before p v, tanh by a hardware instruction); `inputs`: products of the op's inputs, which are exact
    /// unless the multiplier's format is narrower than the stored one (tf32).
    double carried = 0, inner = 0, inputs = 0;
};

/// Each function: `elements` sorted by row; result in the same order. Shapes as in models/op.h.
std::vector<Expected> embedding(const Embedding&, View tokens, View wte, View wpe, std::span<const Element>);
/// s = x + pre_bias + residual (each optional: an empty View); sum(s) and the norm are separate outputs.
std::vector<Expected> layer_norm(const LayerNorm&, View x, View pre_bias, View residual, View weight, View bias,
                                 std::span<const Element>);
std::vector<Expected> layer_norm_sum(const LayerNorm&, View x, View pre_bias, View residual, std::span<const Element>);
/// epilogue: + bias, then GELU, then + residual, each optional.
std::vector<Expected> gemm(const Gemm&, View x, View w, View bias, bool gelu, View residual, std::span<const Element>);
std::vector<Expected> bias_gelu(View x, View bias, bool gelu, std::span<const Element>);
std::vector<Expected> residual_add(View x, View residual, std::span<const Element>);
std::vector<Expected> attention(const Attention&, View qkv, std::span<const Element>);
std::vector<Expected> attention_scores(const AttentionScores&, View qkv, std::span<const Element>);
std::vector<Expected> scale_mask(const ScaleMask&, View scores, std::span<const Element>);
std::vector<Expected> softmax(const Softmax&, View scores, std::span<const Element>);
std::vector<Expected> attention_context(const AttentionContext&, View probabilities, View qkv,
                                        std::span<const Element>);

/// The largest error that a correct implementation may show for `expected`, when it computes in `precision` and stores
/// the result as `stored`:
///     u_store |value| + underflow + u_sum (sqrt(terms) magnitude + L carried) + L (u_multiply inner + u_input inputs),
/// which is the probabilistic form of the summation bound (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019), with
/// L = `deviations` for root-sum-square effects. u_sum is one unit, not half of one, where tensor cores add: they
/// truncate (Fasi et al., PeerJ Comput. Sci. 7:e330, 2021). u_input is 0 except in tf32, whose operands may be
/// truncated. `underflow` is what may be lost below the smallest normal number. It assumes data of mixed signs.
/// An infinite value has bound 0: it must be met exactly (see agrees).
double error_bound(const Expected& expected, Precision precision, DataType stored);
inline constexpr double deviations = 4.0;

/// `computed` is `expected` within error_bound; an infinity agrees with the same infinity only, a NaN with nothing.
bool agrees(double computed, const Expected& expected, Precision precision, DataType stored);

}  // namespace kbench::reference
