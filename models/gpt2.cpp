// GPT-2's forward pass, op by op, under the names of the Hugging Face checkpoint.
#include "models/gpt2.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "models/base/error.h"

namespace kbench {
namespace {

using Kind = Initialisation::Kind;

/// Appends tensors and ops; each function returns the tensor that holds its result.
class Builder {
  public:
    Builder(const Gpt2Config& config, std::int64_t batch, std::int64_t seq)
        : config_(config), rows_(batch * seq), batch_(batch), seq_(seq) {
        model_.name = config.name;
        model_.batch = batch;
        model_.seq = seq;
        model_.vocab = config.vocab_size;
    }

    Model build(AttentionKind attention) {
        const std::int64_t width = config_.n_embd;
        model_.tokens =
            tensor({.name = "tokens", .role = Role::tokens, .rows = 1, .columns = rows_, .is_vector = true});
        const TensorId wte = matrix("wte.weight", config_.vocab_size, width, config_.initializer_range);
        const TensorId wpe = matrix("wpe.weight", config_.n_ctx, width, config_.initializer_range);
        TensorId x = op(Embedding{rows_, seq_, width, config_.vocab_size, config_.n_ctx}, "wte+wpe",
                        {model_.tokens, wte, wpe}, activation("wte+wpe.out", width));
        for (std::int64_t i = 0; i < config_.n_layer; ++i) x = block(i, x, attention);
        x = layer_norm("ln_f", x);

        const TensorId head = config_.tie_word_embeddings
                                  ? wte
                                  : matrix("lm_head.weight", config_.vocab_size, width, config_.initializer_range);
        const TensorId logits =
            tensor({.name = "logits", .role = Role::logits, .rows = rows_, .columns = config_.vocab_size});
        model_.logits = op(Gemm{rows_, config_.vocab_size, width, true}, "lm_head", {x, head}, logits);
        return std::move(model_);
    }

  private:
    /// One transformer block: attention and MLP, each behind a layer norm and added to the residual stream x.
    TensorId block(std::int64_t index, TensorId x, AttentionKind kind) {
        const std::string h = fmt::format("h.{}", index);
        const std::int64_t width = config_.n_embd, inner = config_.n_inner ? config_.n_inner : 4 * width;
        // The residual stream adds 2 n_layer projections: their initial variance is divided by that number.
        const double residual_std = config_.initializer_range / std::sqrt(2.0 * static_cast<double>(config_.n_layer));

        TensorId y = layer_norm(h + ".ln_1", x);
        y = linear(h + ".attn.c_attn", y, width, 3 * width, config_.initializer_range);
        y = kind == AttentionKind::fused ? fused_attention(h + ".attn", y, scale(index))
                                         : unfused_attention(h + ".attn", y, scale(index));
        y = linear(h + ".attn.c_proj", y, width, width, residual_std);
        x = op(ResidualAdd{rows_, width}, h, {y, x}, activation(h + ".attn.residual", width));

        y = layer_norm(h + ".ln_2", x);
        y = linear(h + ".mlp.c_fc", y, width, inner, config_.initializer_range);
        y = op(Gelu{rows_, inner}, h + ".mlp.act", {y}, activation(h + ".mlp.act.out", inner));
        y = linear(h + ".mlp.c_proj", y, inner, width, residual_std);
        return op(ResidualAdd{rows_, width}, h, {y, x}, activation(h + ".out", width));
    }

    TensorId layer_norm(const std::string& layer, TensorId x) {
        const std::int64_t width = config_.n_embd;
        const TensorId weight = vector(layer + ".weight", width, Kind::ones);
        const TensorId bias = vector(layer + ".bias", width, Kind::zeros);
        return op(LayerNorm{rows_, width, config_.layer_norm_epsilon}, layer, {x, weight, bias},
                  activation(layer + ".out", width));
    }

    /// Hugging Face's Conv1D: x · w + bias with w [in, out].
    TensorId linear(const std::string& layer, TensorId x, std::int64_t in, std::int64_t out,
                    double standard_deviation) {
        const TensorId weight = matrix(layer + ".weight", in, out, standard_deviation);
        const TensorId bias = vector(layer + ".bias", out, Kind::zeros);
        const TensorId product = op(Gemm{rows_, out, in}, layer, {x, weight}, activation(layer + ".gemm", out));
        return op(BiasAdd{rows_, out}, layer, {product, bias}, activation(layer + ".out", out));
    }

    TensorId fused_attention(const std::string& layer, TensorId qkv, double scale) {
        return op(Attention{shape(), scale}, layer, {qkv}, activation(layer + ".out", config_.n_embd));
    }

    TensorId unfused_attention(const std::string& layer, TensorId qkv, double scale) {
        const bool upcast = config_.reorder_and_upcast_attn;
        const std::int64_t score_rows = rows_ * config_.n_head;
        const auto scores = [&](const char* name, bool fp32) {
            return tensor(
                {.name = layer + name, .role = Role::scores, .rows = score_rows, .columns = seq_, .always_fp32 = fp32});
        };
        TensorId y = op(AttentionScores{shape(), upcast}, layer, {qkv}, scores(".scores", upcast));
        y = op(ScaleMask{shape(), scale, upcast}, layer, {y}, scores(".masked_scores", upcast));
        y = op(Softmax{score_rows, seq_, upcast}, layer, {y}, scores(".probabilities", false));
        return op(AttentionContext{shape()}, layer, {y, qkv}, activation(layer + ".out", config_.n_embd));
    }

    AttentionShape shape() const { return {batch_, config_.n_head, seq_, config_.n_embd / config_.n_head}; }

    double scale(std::int64_t layer) const {
        const double by_size =
            config_.scale_attn_weights ? 1.0 / std::sqrt(static_cast<double>(shape().head_size)) : 1.0;
        return config_.scale_attn_by_inverse_layer_idx ? by_size / static_cast<double>(layer + 1) : by_size;
    }

    TensorId tensor(Tensor tensor) {
        model_.tensors.push_back(std::move(tensor));
        return model_.tensors.size() - 1;
    }
    TensorId matrix(const std::string& name, std::int64_t rows, std::int64_t columns, double standard_deviation) {
        return tensor({.name = name,
                       .role = Role::weights,
                       .rows = rows,
                       .columns = columns,
                       .init = {Kind::normal, standard_deviation}});
    }
    TensorId vector(const std::string& name, std::int64_t size, Kind init) {
        return tensor(
            {.name = name, .role = Role::weights, .rows = 1, .columns = size, .is_vector = true, .init = {init}});
    }
    TensorId activation(const std::string& name, std::int64_t width) {
        return tensor({.name = name, .role = Role::activations, .rows = rows_, .columns = width});
    }
    TensorId op(const Op& op, const std::string& layer, std::vector<TensorId> inputs, TensorId output) {
        model_.ops.push_back({op, layer, std::move(inputs), {output}});
        return output;
    }

    const Gpt2Config& config_;
    const std::int64_t rows_, batch_, seq_;
    Model model_;
};

}  // namespace

Model make_gpt2(const Gpt2Config& config, std::int64_t batch, std::int64_t seq, AttentionKind attention) {
    if (batch < 1) throw UsageError(fmt::format("batch {} must be at least 1", batch));
    if (seq < 1) throw UsageError(fmt::format("seq {} must be at least 1", seq));
    if (seq > config.n_ctx)
        throw UsageError(fmt::format("seq {} is over {}'s n_ctx {}", seq, config.name, config.n_ctx));
    return Builder(config, batch, seq).build(attention);
}

}  // namespace kbench
