// The oracle: every op as plain fp64 loops, on inputs of any stored type, at chosen output elements.
// It is slow on purpose and easy to read; nothing is tuned except that elements of one row share their work.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kbench/reference.h"
#include "models/ops/list.h"

namespace kbench::reference {

/// `sums`, each added to what its element held before.
std::vector<Expected> added_to(View before, std::span<const Element> elements, std::vector<Expected> sums);
/// The same for a GEMM's products. In 16 bits each may be rounded before it is added; cuBLAS with beta = 1 does so.
std::vector<Expected> products_added_to(View before, std::span<const Element> elements, std::vector<Expected> products);

/// For all functions: `elements` are sorted by row, the result is in the same order, shapes are as in models/ops/.
std::vector<Expected> embedding(const Embedding&, View tokens, View wte, View wpe, std::span<const Element>);
std::vector<Expected> embedding_at(const EmbeddingAt&, View tokens, View positions, View wte, View wpe,
                                   std::span<const Element>);
std::vector<Expected> token_embedding(const TokenEmbedding&, View tokens, View table, std::span<const Element>);
/// The output dwte, which includes `before` where it accumulates; and dwpe.
std::vector<Expected> embedding_dwte(const Embedding&, View tokens, View dout, View before, std::span<const Element>);
std::vector<Expected> embedding_dwpe(const Embedding&, View dout, std::span<const Element>);
/// s = x + pre_bias + residual (each optional: an empty View); sum(s) and the norm are separate outputs.
std::vector<Expected> layer_norm(const LayerNorm&, View x, View pre_bias, View residual, View weight, View bias,
                                 std::span<const Element>);
std::vector<Expected> layer_norm_sum(const LayerNorm&, View x, View pre_bias, View residual, std::span<const Element>);
/// `past` is the gradient that bypasses the layer norm and is added (optional: an empty View).
std::vector<Expected> layer_norm_dx(const LayerNorm&, View x, View dy, View weight, View past,
                                    std::span<const Element>);
std::vector<Expected> layer_norm_dw(const LayerNorm&, View x, View dy, std::span<const Element>);
std::vector<Expected> rms_norm(const RmsNorm&, View x, View weight, std::span<const Element>);
std::vector<Expected> rms_norm_dx(const RmsNorm&, View x, View dy, View weight, std::span<const Element>);
std::vector<Expected> rms_norm_dw(const RmsNorm&, View x, View dy, std::span<const Element>);
/// The epilogue is + bias, then an activation, then + residual, each optional.
std::vector<Expected> gemm(const Gemm&, View x, View w, View bias, std::optional<Activation>, View residual,
                           std::span<const Element>);
/// dgrad from dy and w, or wgrad from x and dy.
std::vector<Expected> gemm_gradient(const Gemm&, Direction, View first, View second, std::span<const Element>);
/// A product, such as dgrad's, times the function's slope at x.
std::vector<Expected> times_slope(Activation, std::vector<Expected> products, View x, std::span<const Element>);
/// Like bias_gradient, but by the unit that multiplies dy: in tf32 it reads dy rounded.
std::vector<Expected> product_bias_gradient(const BiasAdd&, View dy, std::span<const Element>);
/// function(x + bias); bias and function are each optional.
std::vector<Expected> bias_activation(View x, View bias, std::optional<Activation>, std::span<const Element>);
std::vector<Expected> activation_gradient(Activation, View x, View dy, std::span<const Element>);
std::vector<Expected> bias_gradient(const BiasAdd&, View dy, std::span<const Element>);
std::vector<Expected> residual_add(View x, View residual, std::span<const Element>);
std::vector<Expected> attention(const Attention&, View qkv, std::span<const Element>);
std::vector<Expected> attention_lse(const Attention&, View qkv, std::span<const Element>);
std::vector<Expected> attention_gradient(const Attention&, View qkv, View out, View dout, View lse,
                                         std::span<const Element>);
std::vector<Expected> attention_scores(const AttentionScores&, View qkv, std::span<const Element>);
std::vector<Expected> scale_mask(const ScaleMask&, View scores, std::span<const Element>);
std::vector<Expected> softmax(const Softmax&, View scores, std::span<const Element>);
std::vector<Expected> attention_context(const AttentionContext&, View probabilities, View qkv,
                                        std::span<const Element>);
std::vector<Expected> cached_attention(const CachedAttention&, View qkv, View key_cache, View value_cache,
                                       View positions, std::span<const Element>);
/// What a cache holds afterwards: the new tokens' part of qkv, which begins at `first_column`, at their positions.
std::vector<Expected> cache_with_new(const CachedAttention&, View qkv, std::int64_t first_column, View cache,
                                     View positions, std::span<const Element>);
/// What a cache holds afterwards: the part of qkv that begins at `first_column`, in the prompt's rows.
std::vector<Expected> filled_cache(const FillCache&, View qkv, std::int64_t first_column, View cache,
                                   std::span<const Element>);
std::vector<Expected> last_token(const LastToken&, View x, std::span<const Element>);
std::vector<Expected> qk_norm(const QkNorm&, View qkv, View q_weight, View k_weight, std::span<const Element>);
std::vector<Expected> rotary_embedding(const RotaryEmbedding&, View qkv, View positions, std::span<const Element>);
std::vector<Expected> swiglu(const SwiGlu&, View gate_up, std::span<const Element>);
/// bias is an empty View where the op has none.
std::vector<Expected> conv2d(const Conv2d&, View x, View weight, View bias, std::span<const Element>);
std::vector<Expected> conv2d_dgrad(const Conv2d&, View dy, View weight, std::span<const Element>);
/// The outputs dw and db, without what they are added to.
std::vector<Expected> conv2d_dw(const Conv2d&, View x, View dy, std::span<const Element>);
std::vector<Expected> conv2d_db(const Conv2d&, View dy, std::span<const Element>);
/// Applies a mask or a batch norm to sums that are not rounded in between.
std::vector<Expected> masked(const TimeMask&, std::vector<Expected> sums, View lengths, std::span<const Element>);
std::vector<Expected> normalised(const BatchNorm&, std::vector<Expected> sums, View weight, View bias, View mean,
                                 View variance, std::span<const Element>);
/// residual is added to x; empty where there is none.
std::vector<Expected> batch_norm(const BatchNorm&, View x, View weight, View bias, View mean, View variance,
                                 std::span<const Element>, View residual = {});
std::vector<Expected> hardtanh(const Hardtanh&, View x, std::span<const Element>);
std::vector<Expected> time_mask(const TimeMask&, View x, View lengths, std::span<const Element>);
std::vector<Expected> to_sequence(const ToSequence&, View x, std::span<const Element>);
/// The output of one direction of a recurrent layer.
enum class RecurrentOutput { h, gates, cells };
std::vector<Expected> recurrent(Cell, const RecurrentShape&, bool reverse, View gates_x, View weight_hh, View bias_ih,
                                View bias_hh, View lengths, std::span<const Element>,
                                RecurrentOutput = RecurrentOutput::h);
/// bwd and wgrad of both directions; the question asks for one of Recurrent's outputs.
std::vector<Expected> recurrent_gradient(Cell, const RecurrentShape&, Question);
std::vector<Expected> recurrent_weight_gradient(Cell, const RecurrentShape&, bool accumulates, Question);
/// The output `losses`, and what the logits become.
std::vector<Expected> cross_entropy_losses(const CrossEntropy&, View logits, View tokens, std::span<const Element>);
std::vector<Expected> cross_entropy_gradient(const CrossEntropy&, View logits, View tokens, View loss_scale,
                                             std::span<const Element>);
std::vector<Expected> global_norm(std::span<const View> gradients);
/// What operand `output` becomes; `operands` are as the op lists them.
std::vector<Expected> adamw(const AdamW&, std::span<const View> operands, std::size_t output, std::span<const Element>);

/// What each op kind must have here: the expected elements of a step that it heads, in the order of the question, and
/// the cost of one element, by direction where that differs. A kind of list.h without these two does not compile.
std::vector<Expected> expected(const Embedding&, Question);
ElementCost cost(const Embedding&, Direction);
std::vector<Expected> expected(const EmbeddingAt&, Question);
ElementCost cost(const EmbeddingAt&);
std::vector<Expected> expected(const TokenEmbedding&, Question);
ElementCost cost(const TokenEmbedding&);
std::vector<Expected> expected(const LayerNorm&, Question);
ElementCost cost(const LayerNorm&, Direction);
std::vector<Expected> expected(const RmsNorm&, Question);
ElementCost cost(const RmsNorm&, Direction);
std::vector<Expected> expected(const Gemm&, Question);
ElementCost cost(const Gemm&, Direction);
std::vector<Expected> expected(const BiasAdd&, Question);
ElementCost cost(const BiasAdd&, Direction);
std::vector<Expected> expected_activation(Activation, Question);
template <Activation f>
std::vector<Expected> expected(const ActivationOp<f>&, const Question& question) {
    return expected_activation(f, question);
}
template <Activation f>
ElementCost cost(const ActivationOp<f>&) {
    return {};
}
std::vector<Expected> expected(const ResidualAdd&, Question);
ElementCost cost(const ResidualAdd&);
std::vector<Expected> expected(const Attention&, Question);
ElementCost cost(const Attention&, Direction);
std::vector<Expected> expected(const AttentionScores&, Question);
ElementCost cost(const AttentionScores&);
std::vector<Expected> expected(const ScaleMask&, Question);
ElementCost cost(const ScaleMask&);
std::vector<Expected> expected(const Softmax&, Question);
ElementCost cost(const Softmax&);
std::vector<Expected> expected(const AttentionContext&, Question);
ElementCost cost(const AttentionContext&);
std::vector<Expected> expected(const CachedAttention&, Question);
ElementCost cost(const CachedAttention&);
std::vector<Expected> expected(const FillCache&, Question);
ElementCost cost(const FillCache&);
std::vector<Expected> expected(const LastToken&, Question);
ElementCost cost(const LastToken&);
std::vector<Expected> expected(const QkNorm&, Question);
ElementCost cost(const QkNorm&);
std::vector<Expected> expected(const RotaryEmbedding&, Question);
ElementCost cost(const RotaryEmbedding&);
std::vector<Expected> expected(const SwiGlu&, Question);
ElementCost cost(const SwiGlu&);
std::vector<Expected> expected(const Conv2d&, Question);
ElementCost cost(const Conv2d&, Direction);
std::vector<Expected> expected(const BatchNorm&, Question);
ElementCost cost(const BatchNorm&);
std::vector<Expected> expected(const Hardtanh&, Question);
ElementCost cost(const Hardtanh&);
std::vector<Expected> expected(const TimeMask&, Question);
ElementCost cost(const TimeMask&);
std::vector<Expected> expected(const ToSequence&, Question);
ElementCost cost(const ToSequence&);
std::vector<Expected> expected(const Lstm&, Question);
ElementCost cost(const Lstm&, Direction);
std::vector<Expected> expected(const Gru&, Question);
ElementCost cost(const Gru&, Direction);
std::vector<Expected> expected(const Rnn&, Question);
ElementCost cost(const Rnn&, Direction);
std::vector<Expected> expected(const CrossEntropy&, Question);
ElementCost cost(const CrossEntropy&, Direction);
std::vector<Expected> expected(const Ctc&, Question);
ElementCost cost(const Ctc&);
std::vector<Expected> expected(const GlobalNorm&, Question);
ElementCost cost(const GlobalNorm&);
std::vector<Expected> expected(const AdamW&, Question);
ElementCost cost(const AdamW&);

/// A kind's row: kbench's own kinds have the functions above, others come from the program that adds the kind.
struct Row {
    const OpKind* kind;
    std::function<std::vector<Expected>(const Question&)> expected;
    std::function<ElementCost(const Op&, Direction)> cost;
};
/// The row of a kind; throws std::logic_error for a kind that no one added.
const Row& row_of(const OpKind& kind);
void add_row(Row row);

/// Expected values of output operand `output` (an index into operands(step)) at `elements`, sorted by row. `views` is
/// parallel to operands(step): what each operand holds before the step runs; outputs may be empty views.
std::vector<Expected> evaluate(const Step& step, std::size_t output, std::span<const View> views,
                               std::span<const Element> elements);

/// The largest error that a correct implementation may show for `expected`, when it computes in `precision` and stores
/// the result as `stored`:
///     u_store |value| + underflow + u_sum (n magnitude + L carried) + L (u_multiply inner + u_input inputs).
/// It is the probabilistic form of the summation bound (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019), with
/// n = sqrt(terms) (plus up to 4, at most all, where terms are few) and L = `deviations` for root-sum-square effects.
/// u_sum is one unit, not half of one, where tensor cores add: they truncate (Fasi et al., PeerJ Comput. Sci. 7:e330,
/// 2021). u_input is 0 except in tf32, whose operands may be truncated. `underflow` is what may be lost below the
/// smallest normal number. The bound assumes data of mixed signs. An infinite value has bound 0: it must be met exactly
/// (see agrees).
double error_bound(const Expected& expected, Precision precision, DataType stored);
inline constexpr double deviations = 4.0;

/// Whether `computed` is within error_bound of `expected`. An infinity agrees only with the same one, NaN with nothing.
bool agrees(double computed, const Expected& expected, Precision precision, DataType stored);

}  // namespace kbench::reference
