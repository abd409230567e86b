// The closed set of ops: plain structs with shapes. What is computed, not who computes it.
// Only shapes and exact semantics belong here; costs are in cost.h, layers in model.h.
//
// All matrices are row-major. "rows" are batch * seq positions.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "models/base/precision.h"

namespace kbench {

enum class Direction { fwd, bwd, dgrad, wgrad };

constexpr std::string_view name(Direction direction) {
    constexpr std::string_view names[] = {"fwd", "bwd", "dgrad", "wgrad"};
    return names[static_cast<int>(direction)];
}

/// y[r, :] = wte[tokens[r], :] + wpe[r % seq, :].
/// in: tokens [rows] int32, wte [vocab, width], wpe [positions, width]; out: y [rows, width].
struct Embedding {
    std::int64_t rows, seq, width, vocab, positions;
    bool operator==(const Embedding&) const = default;
};

/// y = (x - mean) * rstd * weight + bias over each row, rstd = 1 / sqrt(variance + epsilon), biased variance
/// (Ba et al., 2016, eq. 3).
/// in: x [rows, width], weight [width], bias [width]; out: y [rows, width].
struct LayerNorm {
    std::int64_t rows, width;
    double epsilon;
    bool operator==(const LayerNorm&) const = default;
};

/// y = x · w. in: x [m, k], w [k, n], or [n, k] when `weight_transposed`; out: y [m, n].
struct Gemm {
    std::int64_t m, n, k;
    bool weight_transposed = false;
    bool operator==(const Gemm&) const = default;
};

/// y[r, c] = x[r, c] + bias[c]. in: x [rows, width], bias [width]; out: y [rows, width].
struct BiasAdd {
    std::int64_t rows, width;
    bool operator==(const BiasAdd&) const = default;
};

/// y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016). in: x; out: y, [rows, width].
struct Gelu {
    std::int64_t rows, width;
    bool operator==(const Gelu&) const = default;
};

/// y = x + residual. in: x, residual; out: y, all [rows, width].
struct ResidualAdd {
    std::int64_t rows, width;
    bool operator==(const ResidualAdd&) const = default;
};

/// The shape of multi-head self-attention, shared by the fused op and the parts of the unfused one.
/// qkv is [batch * seq, 3 * heads * head_size]: in each row first all of q, then all of k, then all of v, each by head.
struct AttentionShape {
    std::int64_t batch, heads, seq, head_size;
    bool operator==(const AttentionShape&) const = default;
};

/// out = softmax(scale * q k^T, causal) v for each batch and head (Vaswani et al., 2017, eq. 1).
/// in: qkv; out: [batch * seq, heads * head_size], heads side by side.
struct Attention {
    AttentionShape shape;
    double scale;
    bool operator==(const Attention&) const = default;
};

/// scores[b, h, i, j] = q_i · k_j, all of the square. in: qkv; out: scores [batch * heads * seq, seq].
/// `upcast`: scores are stored in fp32 whatever the precision (Hugging Face's reorder_and_upcast_attn).
struct AttentionScores {
    AttentionShape shape;
    bool upcast;
    bool operator==(const AttentionScores&) const = default;
};

/// scores[i, j] = scale * scores[i, j] where j <= i (i counted within its head), minus infinity elsewhere. In place.
/// in: scores [batch * heads * seq, seq]; out: the same.
struct ScaleMask {
    AttentionShape shape;
    double scale;
    bool upcast;
    bool operator==(const ScaleMask&) const = default;
};

/// Row-wise softmax of masked scores. in: scores [rows, width] (fp32 when `upcast`); out: probabilities [rows, width].
struct Softmax {
    std::int64_t rows, width;
    bool upcast;
    bool operator==(const Softmax&) const = default;
};

/// out = probabilities · v for each batch and head. in: probabilities [batch * heads * seq, seq], qkv;
/// out: [batch * seq, heads * head_size].
struct AttentionContext {
    AttentionShape shape;
    bool operator==(const AttentionContext&) const = default;
};

using Op = std::variant<Embedding, LayerNorm, Gemm, BiasAdd, Gelu, ResidualAdd, Attention, AttentionScores, ScaleMask,
                        Softmax, AttentionContext>;

/// One row for each op kind, in the order of the variant.
struct OpKind {
    std::string_view name;
    std::string_view what;
};
inline constexpr OpKind op_kinds[] = {
    {"embedding", "token and position embedding, added"},
    {"layernorm", "layer normalisation over the last dimension"},
    {"gemm", "matrix product with a weight"},
    {"bias", "bias added to each row"},
    {"gelu", "GELU, tanh form"},
    {"residual", "addition of the residual stream"},
    {"attention", "causal multi-head self-attention, fused"},
    {"attention_scores", "q k^T of every head (unfused attention)"},
    {"scale_mask", "scale and causal mask (unfused attention)"},
    {"softmax", "row-wise softmax (unfused attention)"},
    {"attention_context", "probabilities times v (unfused attention)"},
};
static_assert(std::size(op_kinds) == std::variant_size_v<Op>);

inline std::string_view name(const Op& op) { return op_kinds[op.index()].name; }

}  // namespace kbench
