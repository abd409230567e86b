// Builds GPT-2's forward pass op by op, under the names of the Hugging Face checkpoint.
#include "models/gpt2.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kbench/error.h"
#include "models/ops/list.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

using Kind = Contents::Kind;

/// Appends tensors and ops. Each function returns the tensor that holds its result.
class Gpt2Builder {
  public:
    Gpt2Builder(const Gpt2Config& config, std::int64_t batch, std::int64_t seq)
        : config_(config), rows_(batch * seq), batch_(batch), seq_(seq) {
        model_.name = config.name;
    }

    Model build(AttentionKind attention) {
        const TensorId x = add_blocks(embed_prompt(), [&](const std::string& layer, TensorId qkv, double scale) {
            return attention == AttentionKind::fused ? fused_attention(layer, qkv, scale)
                                                     : unfused_attention(layer, qkv, scale);
        });
        const TensorId logits = add_head(x, seq_);
        model_.inputs = {tokens_};
        model_.outputs = {logits};
        if (seq_ > 1)  // a single token has no next one to predict
            model_.loss = OpNode{CrossEntropy{rows_, seq_, config_.vocab_size}, "loss", {logits, tokens_}, {}};
        return std::move(model_);
    }

    /// The pass over a prompt: caches have room for `more` tokens behind it, and the last token alone has logits.
    Model build_prefill(std::int64_t more) {
        TensorId x = add_blocks(embed_prompt(), [&](const std::string& layer, TensorId qkv, double scale) {
            fill_cache(layer, qkv, seq_ + more);
            return fused_attention(layer, qkv, scale);
        });
        x = op(LastToken{batch_, seq_, config_.n_embd}, "last_token", {x},
               tensor({.name = "last_token.out", .role = Role::activations, .shape = {batch_, 1, config_.n_embd}}));
        const TensorId logits = add_head(x, 1);
        model_.inputs = {tokens_};
        model_.outputs = {logits};
        return std::move(model_);
    }

    /// The step of one more token each sequence, after `past` of them.
    Model build_decode(std::int64_t past) {
        add_embeddings();
        const Contents of_positions = positions_operand(batch_, past).contents;
        const TensorId positions = tensor({.name = "positions",
                                           .role = Role::tokens,
                                           .shape = {batch_, 1},
                                           .element = ElementType::int32,
                                           .contents = of_positions});
        TensorId x = op(EmbeddingAt{rows_, seq_, config_.n_embd, config_.vocab_size, config_.n_ctx}, "wte+wpe",
                        {tokens_, positions, wte_, wpe_}, activation("wte+wpe.out", config_.n_embd));
        x = add_blocks(x, [&](const std::string& layer, TensorId qkv, double scale) {
            return cached_attention(layer, qkv, positions, past, scale);
        });
        const TensorId logits = add_head(x, seq_);
        model_.inputs = {tokens_, positions};
        model_.outputs = {logits};
        return std::move(model_);
    }

  private:
    void add_embeddings() {
        tokens_ = tensor({.name = "tokens",
                          .role = Role::tokens,
                          .shape = {batch_, seq_},
                          .element = ElementType::int32,
                          .contents = Contents::below(config_.vocab_size)});
        wte_ = matrix("wte.weight", config_.vocab_size, config_.n_embd, config_.initializer_range);
        wpe_ = matrix("wpe.weight", config_.n_ctx, config_.n_embd, config_.initializer_range);
    }

    /// All tokens of a sequence, from the first position on.
    TensorId embed_prompt() {
        add_embeddings();
        return op(Embedding{rows_, seq_, config_.n_embd, config_.vocab_size, config_.n_ctx}, "wte+wpe",
                  {tokens_, wte_, wpe_}, activation("wte+wpe.out", config_.n_embd));
    }

    /// All blocks and the norm behind them. `attend(layer, qkv, scale)` adds the ops of attention.
    TensorId add_blocks(TensorId x, const auto& attend) {
        for (std::int64_t i = 0; i < config_.n_layer; ++i) x = block(i, x, attend);
        return layer_norm("ln_f", x);
    }

    /// The language model's head, which makes the logits of x [batch, tokens, width].
    TensorId add_head(TensorId x, std::int64_t tokens) {
        const TensorId head = config_.tie_word_embeddings ? wte_
                                                          : matrix("lm_head.weight", config_.vocab_size, config_.n_embd,
                                                                   config_.initializer_range);
        const TensorId logits =
            tensor({.name = "logits", .role = Role::logits, .shape = {batch_, tokens, config_.vocab_size}});
        return op(Gemm{batch_ * tokens, config_.vocab_size, config_.n_embd, true}, "lm_head", {x, head}, logits);
    }

    /// One transformer block: attention and MLP, each after a layer norm and added to the residual stream x.
    TensorId block(std::int64_t index, TensorId x, const auto& attend) {
        const std::string h = fmt::format("h.{}", index);
        const std::int64_t width = config_.n_embd, inner = config_.n_inner ? config_.n_inner : 4 * width;
        // The residual stream sums 2 n_layer projections, so their initial variance is divided by that number.
        const double residual_std = config_.initializer_range / std::sqrt(2.0 * static_cast<double>(config_.n_layer));

        TensorId y = layer_norm(h + ".ln_1", x);
        y = linear(h + ".attn.c_attn", y, width, 3 * width, config_.initializer_range);
        y = attend(h + ".attn", y, scale(index));
        y = linear(h + ".attn.c_proj", y, width, width, residual_std);
        x = op(ResidualAdd{rows_, width}, h, {y, x}, activation(h + ".attn.residual", width));

        y = layer_norm(h + ".ln_2", x);
        y = linear(h + ".mlp.c_fc", y, width, inner, config_.initializer_range);
        y = op(require_op_kind(facts_of(config_.activation).kind).on(rows_, inner), h + ".mlp.act", {y},
               activation(h + ".mlp.act.out", inner));
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
            return tensor({.name = layer + name,
                           .role = Role::scores,
                           .shape = {batch_, config_.n_head, seq_, seq_},
                           .element = fp32 ? ElementType::at_least_fp32 : ElementType::storage});
        };
        TensorId y = op(AttentionScores{shape(), upcast}, layer, {qkv}, scores(".scores", upcast));
        y = op(ScaleMask{shape(), scale, upcast}, layer, {y}, scores(".masked_scores", upcast));
        y = op(Softmax{score_rows, seq_, upcast}, layer, {y}, scores(".probabilities", false));
        return op(AttentionContext{shape()}, layer, {y, qkv}, activation(layer + ".out", config_.n_embd));
    }

    /// A layer's caches of keys and values, which are there before the step, and what a step makes of them.
    struct Caches {
        TensorId keys, values, new_keys, new_values;
    };
    Caches add_caches(const std::string& layer, std::int64_t capacity, std::string_view made) {
        const auto cache = [&](std::string_view name, std::string_view suffix) {
            return tensor({.name = fmt::format("{}.{}{}", layer, name, suffix),
                           .role = Role::cache,
                           .shape = {batch_, config_.n_head, capacity, shape().head_size},
                           .contents = Contents::normal(),
                           .resident = suffix.empty()});
        };
        return {cache("key_cache", ""), cache("value_cache", ""), cache("key_cache", made), cache("value_cache", made)};
    }

    void fill_cache(const std::string& layer, TensorId qkv, std::int64_t capacity) {
        const FillCache op{.batch = batch_,
                           .heads = config_.n_head,
                           .kv_heads = config_.n_head,
                           .seq = seq_,
                           .capacity = capacity,
                           .head_size = shape().head_size};
        const Caches of = add_caches(layer, capacity, ".filled");
        model_.ops.push_back({op, layer, {qkv, of.keys, of.values}, {of.new_keys, of.new_values}});
    }

    /// The caches have room for the new token.
    TensorId cached_attention(const std::string& layer, TensorId qkv, TensorId positions, std::int64_t past,
                              double scale) {
        const CachedAttention op{.batch = batch_,
                                 .heads = config_.n_head,
                                 .kv_heads = config_.n_head,
                                 .queries = seq_,
                                 .past = past,
                                 .head_size = shape().head_size,
                                 .scale = scale};
        const Caches of = add_caches(layer, op.keys(), ".appended");
        const TensorId out = activation(layer + ".out", config_.n_embd);
        model_.ops.push_back({op, layer, {qkv, of.keys, of.values, positions}, {of.new_keys, of.new_values, out}});
        return out;
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
                       .shape = {rows, columns},
                       .contents = Contents::normal(standard_deviation)});
    }
    TensorId vector(const std::string& name, std::int64_t size, Kind init) {
        return tensor({.name = name, .role = Role::weights, .shape = {size}, .contents = {init}});
    }
    TensorId activation(const std::string& name, std::int64_t width) {
        return tensor({.name = name, .role = Role::activations, .shape = {batch_, seq_, width}});
    }
    TensorId op(const Op& op, const std::string& layer, std::vector<TensorId> inputs, TensorId output) {
        model_.ops.push_back({op, layer, std::move(inputs), {output}});
        return output;
    }

    const Gpt2Config& config_;
    const std::int64_t rows_, batch_, seq_;
    Model model_;
    TensorId tokens_ = 0, wte_ = 0, wpe_ = 0;
};

void require_prompt(const Gpt2Config& config, std::int64_t batch, std::int64_t seq) {
    if (batch < 1) throw UsageError(fmt::format("batch {} must be at least 1", batch));
    if (seq < 1) throw UsageError(fmt::format("seq {} must be at least 1", seq));
    if (seq > config.n_ctx)
        throw UsageError(fmt::format("seq {} is over {}'s n_ctx {}", seq, config.name, config.n_ctx));
}

}  // namespace

std::span<const Gpt2Config> gpt2_configs() {
    static const std::array configs{
        Gpt2Config{.name = "gpt2", .n_embd = 768, .n_layer = 12, .n_head = 12},
        Gpt2Config{.name = "gpt2-medium", .n_embd = 1024, .n_layer = 24, .n_head = 16},
        // The options that CodeParrot was trained with: scores are divided by the layer's number and kept in fp32.
        Gpt2Config{.name = "gpt2-large-codeparrot",
                   .n_embd = 1280,
                   .n_layer = 36,
                   .n_head = 20,
                   .vocab_size = 32768,
                   .scale_attn_by_inverse_layer_idx = true,
                   .reorder_and_upcast_attn = true},
        Gpt2Config{.name = "gpt2-large", .n_embd = 1280, .n_layer = 36, .n_head = 20},
        Gpt2Config{.name = "gpt2-xl", .n_embd = 1600, .n_layer = 48, .n_head = 25},
    };
    return configs;
}

const Gpt2Config& gpt2_config(std::string_view name) {
    return *std::ranges::find(gpt2_configs(), name, &Gpt2Config::name);
}

ModelSpec gpt2_spec(const Gpt2Config& c) {
    ModelSpec spec{.name = c.name};
    spec.axes = {{.name = "batch"},
                 {.name = "seq", .usual = c.n_ctx, .most = c.n_ctx, .most_is = "n_ctx"},
                 {.name = "attention"},
                 {.name = "phase"},
                 {.name = "new", .usual = 0, .most = c.n_ctx - 1, .most_is = "n_ctx less 1"},
                 {.name = "past", .usual = c.n_ctx - 1, .most = c.n_ctx - 1, .most_is = "largest past"}};
    spec.description = fmt::format(
        "{}: n_embd {}, n_layer {}, n_head {}, n_ctx {}, vocab_size {}, n_inner {}, layer_norm_epsilon {}, scale_attn_weights {}, scale_attn_by_inverse_layer_idx {}, reorder_and_upcast_attn {}, initializer_range {}, tie_word_embeddings {}",
        c.name, c.n_embd, c.n_layer, c.n_head, c.n_ctx, c.vocab_size, c.n_inner, c.layer_norm_epsilon,
        c.scale_attn_weights, c.scale_attn_by_inverse_layer_idx, c.reorder_and_upcast_attn, c.initializer_range,
        c.tie_word_embeddings);
    // The text for GELU's tanh form says nothing about it, because results written before other forms existed do not.
    if (c.activation != Activation::gelu_tanh)
        spec.description += fmt::format(", activation {}", facts_of(c.activation).kind);
    spec.build_at = [c](const ModelPoint& point) {
        if (point.word("phase") == "prefill")
            return make_gpt2_prefill(c, point.count("batch"), point.count("seq"), point.count("new"));
        if (point.word("phase") == "decode") return make_gpt2_decode(c, point.count("batch"), point.count("past"));
        const bool fused = point.word("attention") == "fused";
        return make_gpt2(c, point.count("batch"), point.count("seq"),
                         fused ? AttentionKind::fused : AttentionKind::unfused);
    };
    return spec;
}

std::vector<ModelSpec> gpt2_models() {
    std::vector<ModelSpec> models;
    for (const Gpt2Config& config : gpt2_configs()) models.push_back(gpt2_spec(config));
    return models;
}

Model make_gpt2(const Gpt2Config& config, std::int64_t batch, std::int64_t seq, AttentionKind attention) {
    require_prompt(config, batch, seq);
    return Gpt2Builder(config, batch, seq).build(attention);
}

Model make_gpt2_prefill(const Gpt2Config& config, std::int64_t batch, std::int64_t seq, std::int64_t more) {
    require_prompt(config, batch, seq);
    if (more < 0) throw UsageError(fmt::format("new {} must be at least 0", more));
    if (more > config.n_ctx - seq)
        throw UsageError(
            fmt::format("seq {} and new {} are together over {}'s n_ctx {}", seq, more, config.name, config.n_ctx));
    return Gpt2Builder(config, batch, seq).build_prefill(more);
}

Model make_gpt2_decode(const Gpt2Config& config, std::int64_t batch, std::int64_t past) {
    if (batch < 1) throw UsageError(fmt::format("batch {} must be at least 1", batch));
    if (past < 0) throw UsageError(fmt::format("past {} must be at least 0", past));
    if (past >= config.n_ctx)
        throw UsageError(
            fmt::format("past {} leaves {}'s n_ctx {} no room for a token", past, config.name, config.n_ctx));
    return Gpt2Builder(config, batch, 1).build_decode(past);
}

}  // namespace kbench
