// Builds a Llama's step op by op, under the names of the Hugging Face checkpoint. Products of the same input are made
// as one, whose weight consists of the checkpoint's: q, k and v, and the MLP's gate and up.
#include "models/llama.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kbench/error.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

using Kind = Contents::Kind;

/// Appends tensors and ops. Each function returns the tensor that holds its result.
class LlamaBuilder {
  public:
    LlamaBuilder(const LlamaConfig& config, std::int64_t batch, std::int64_t tokens, std::int64_t past)
        : config_(config), rows_(batch * tokens), batch_(batch), tokens_each_(tokens), past_(past) {
        model_.name = config.name;
    }

    Model build() {
        const std::int64_t width = config_.hidden_size;
        const TensorId tokens = tensor({.name = "tokens",
                                        .role = Role::tokens,
                                        .shape = {batch_, tokens_each_},
                                        .element = ElementType::int32,
                                        .contents = Contents::below(config_.vocab_size)});
        const Contents of_positions = positions_operand(batch_, past_).contents;
        positions_ = tensor({.name = "positions",
                             .role = Role::tokens,
                             .shape = {batch_, 1},
                             .element = ElementType::int32,
                             .contents = of_positions});
        const TensorId table = matrix("embed_tokens.weight", config_.vocab_size, width);
        TensorId x = op(TokenEmbedding{rows_, width, config_.vocab_size}, "embed_tokens", {tokens, table},
                        activation("embed_tokens.out", width));
        for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i) x = layer(i, x);
        x = norm("norm", x);
        const TensorId head = config_.tie_word_embeddings ? table : matrix("lm_head.weight", config_.vocab_size, width);
        const TensorId logits =
            tensor({.name = "logits", .role = Role::logits, .shape = {batch_, tokens_each_, config_.vocab_size}});
        op(Gemm{rows_, config_.vocab_size, width, true}, "lm_head", {x, head}, logits);
        model_.inputs = {tokens, positions_};
        model_.outputs = {logits};
        return std::move(model_);
    }

  private:
    /// Attention and MLP, each after a norm and added to the residual stream x.
    TensorId layer(std::int64_t index, TensorId x) {
        const std::string name = fmt::format("layers.{}", index);
        const std::int64_t width = config_.hidden_size, inner = config_.intermediate_size;
        TensorId y = norm(name + ".input_layernorm", x);
        y = attention(name + ".self_attn", y, config_.window_of(index));
        x = op(ResidualAdd{rows_, width}, name, {y, x}, activation(name + ".self_attn.residual", width));

        y = norm(name + ".post_attention_layernorm", x);
        y = linear(name + ".mlp", "gate_up_proj", y, width, {{"gate_proj", inner}, {"up_proj", inner}},
                   config_.mlp_bias);
        y = op(SwiGlu{rows_, inner}, name + ".mlp.act_fn", {y}, activation(name + ".mlp.act_fn.out", inner));
        y = linear(name + ".mlp", "down_proj", y, inner, {{"down_proj", width}}, config_.mlp_bias);
        return op(ResidualAdd{rows_, width}, name, {y, x}, activation(name + ".out", width));
    }

    TensorId attention(const std::string& layer, TensorId x, std::int64_t window) {
        const std::int64_t heads = config_.num_attention_heads, kv_heads = config_.num_key_value_heads,
                           size = config_.head_dim;
        const CachedAttention attend{.batch = batch_,
                                     .heads = heads,
                                     .kv_heads = kv_heads,
                                     .queries = tokens_each_,
                                     .past = past_,
                                     .head_size = size,
                                     .window = window,
                                     .scale = 1 / std::sqrt(static_cast<double>(size))};
        TensorId y = linear(layer, "qkv_proj", x, config_.hidden_size,
                            {{"q_proj", heads * size}, {"k_proj", kv_heads * size}, {"v_proj", kv_heads * size}},
                            config_.qkv_bias);
        if (config_.qk_norm)
            y = op(QkNorm{rows_, heads, kv_heads, size, config_.rms_norm_eps}, layer + ".qk_norm",
                   {y, vector(layer + ".q_norm.weight", size, Kind::ones),
                    vector(layer + ".k_norm.weight", size, Kind::ones)},
                   activation(layer + ".qk_norm.out", attend.qkv_width()));
        y = op(RotaryEmbedding{batch_, heads, kv_heads, tokens_each_, past_, size, rope_frequencies(config_.rope, size),
                               config_.rope.attention_factor},
               layer + ".rotary_emb", {y, positions_}, activation(layer + ".rotary_emb.out", attend.qkv_width()));
        y = cached_attention(layer, attend, y);
        return linear(layer, "o_proj", y, heads * size, {{"o_proj", config_.hidden_size}}, config_.o_bias);
    }

    /// Each layer's cache is there before the step, with room for the new tokens.
    TensorId cached_attention(const std::string& layer, const CachedAttention& op, TensorId qkv) {
        const auto cache = [&](const char* name, bool is_resident) {
            return tensor({.name = layer + name,
                           .role = Role::cache,
                           .shape = {batch_, op.kv_heads, op.keys(), op.head_size},
                           .contents = Contents::normal(),
                           .resident = is_resident});
        };
        const TensorId keys = cache(".key_cache", true), values = cache(".value_cache", true),
                       more_keys = cache(".key_cache.appended", false),
                       more_values = cache(".value_cache.appended", false),
                       out = activation(layer + ".out", op.heads * op.head_size);
        model_.ops.push_back({op, layer, {qkv, keys, values, positions_}, {more_keys, more_values, out}});
        return out;
    }

    TensorId norm(const std::string& layer, TensorId x) {
        const std::int64_t width = config_.hidden_size;
        return op(RmsNorm{rows_, width, config_.rms_norm_eps}, layer, {x, vector(layer + ".weight", width, Kind::ones)},
                  activation(layer + ".out", width));
    }

    /// nn.Linear: x · w^T + bias. `parts` are the checkpoint's products, of which this one is made.
    TensorId linear(const std::string& module, const char* name, TensorId x, std::int64_t in,
                    const std::vector<TensorPart>& parts, bool has_bias) {
        const std::string layer = fmt::format("{}.{}", module, name);
        std::int64_t out = 0;
        for (const TensorPart& part : parts) out += part.extent;
        const auto made_of = [&](TensorId weight, const char* suffix) {
            if (parts.size() > 1)
                for (const TensorPart& part : parts)
                    model_.tensors[weight].parts.push_back(
                        {fmt::format("{}.{}{}", module, part.name, suffix), part.extent});
            return weight;
        };
        const TensorId weight = made_of(matrix(layer + ".weight", out, in), ".weight");
        const TensorId product =
            op(Gemm{rows_, out, in, true}, layer, {x, weight}, activation(layer + (has_bias ? ".gemm" : ".out"), out));
        if (!has_bias) return product;
        const TensorId bias = made_of(vector(layer + ".bias", out, Kind::zeros), ".bias");
        return op(BiasAdd{rows_, out}, layer, {product, bias}, activation(layer + ".out", out));
    }

    TensorId tensor(Tensor tensor) {
        model_.tensors.push_back(std::move(tensor));
        return model_.tensors.size() - 1;
    }
    TensorId matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
        return tensor({.name = name,
                       .role = Role::weights,
                       .shape = {rows, columns},
                       .contents = Contents::normal(config_.initializer_range)});
    }
    TensorId vector(const std::string& name, std::int64_t size, Kind init) {
        return tensor({.name = name, .role = Role::weights, .shape = {size}, .contents = {init}});
    }
    TensorId activation(const std::string& name, std::int64_t width) {
        return tensor({.name = name, .role = Role::activations, .shape = {batch_, tokens_each_, width}});
    }
    TensorId op(const Op& op, const std::string& layer, std::vector<TensorId> inputs, TensorId output) {
        model_.ops.push_back({op, layer, std::move(inputs), {output}});
        return output;
    }

    const LlamaConfig& config_;
    const std::int64_t rows_, batch_, tokens_each_, past_;
    Model model_;
    TensorId positions_ = 0;
};

std::string described(const Rope& rope) {
    std::string text = fmt::format("rope_theta {}", rope.theta);
    switch (rope.type) {
        case RopeType::plain: return text;
        case RopeType::linear: return text + fmt::format(", rope linear by {}", rope.factor);
        case RopeType::llama3:
            return text + fmt::format(", rope llama3 by {} over {}, low {}, high {}", rope.factor, rope.original_length,
                                      rope.low_freq_factor, rope.high_freq_factor);
        case RopeType::yarn: break;
    }
    return text + fmt::format(", rope yarn by {} over {}, beta {} to {}, times {}{}", rope.factor, rope.original_length,
                              rope.beta_slow, rope.beta_fast, rope.attention_factor,
                              rope.truncate ? "" : ", not truncated");
}

std::vector<ModelSpec> specs(std::initializer_list<std::string_view> names) {
    std::vector<ModelSpec> models;
    for (const std::string_view name : names) models.push_back(llama_spec(llama_config(name)));
    return models;
}

}  // namespace

std::span<const LlamaConfig> llama_configs() {
    static constexpr Rope llama3{.type = RopeType::llama3, .theta = 500000, .factor = 8, .original_length = 8192};
    static constexpr Rope llama32{.type = RopeType::llama3, .theta = 500000, .factor = 32, .original_length = 8192};
    static const std::array configs{
        // meta-llama/Llama-3.2-1B/config.json
        LlamaConfig{.name = "llama-3.2-1b",
                    .hidden_size = 2048,
                    .num_hidden_layers = 16,
                    .num_attention_heads = 32,
                    .num_key_value_heads = 8,
                    .head_dim = 64,
                    .intermediate_size = 8192,
                    .vocab_size = 128256,
                    .max_position_embeddings = 131072,
                    .rms_norm_eps = 1e-5,
                    .rope = llama32,
                    .tie_word_embeddings = true},
        // meta-llama/Llama-3.1-8B/config.json
        LlamaConfig{.name = "llama-3.1-8b",
                    .hidden_size = 4096,
                    .num_hidden_layers = 32,
                    .num_attention_heads = 32,
                    .num_key_value_heads = 8,
                    .head_dim = 128,
                    .intermediate_size = 14336,
                    .vocab_size = 128256,
                    .max_position_embeddings = 131072,
                    .rms_norm_eps = 1e-5,
                    .rope = llama3},
        // mistralai/Mistral-7B-v0.1/config.json: the version that has a sliding window
        LlamaConfig{.name = "mistral-7b",
                    .hidden_size = 4096,
                    .num_hidden_layers = 32,
                    .num_attention_heads = 32,
                    .num_key_value_heads = 8,
                    .head_dim = 128,
                    .intermediate_size = 14336,
                    .vocab_size = 32000,
                    .max_position_embeddings = 32768,
                    .rms_norm_eps = 1e-5,
                    .sliding_window = 4096},
        // Qwen/Qwen3-0.6B/config.json
        LlamaConfig{.name = "qwen3-0.6b",
                    .hidden_size = 1024,
                    .num_hidden_layers = 28,
                    .num_attention_heads = 16,
                    .num_key_value_heads = 8,
                    .head_dim = 128,
                    .intermediate_size = 3072,
                    .vocab_size = 151936,
                    .max_position_embeddings = 40960,
                    .rope = {.theta = 1000000},
                    .qk_norm = true,
                    .tie_word_embeddings = true},
    };
    return configs;
}

const LlamaConfig& llama_config(std::string_view name) {
    return *std::ranges::find(llama_configs(), name, &LlamaConfig::name);
}

ModelSpec llama_spec(const LlamaConfig& c) {
    constexpr std::int64_t usual_tokens = 2048;  // the longest sequences of these families would take minutes
    const std::int64_t most = c.max_position_embeddings, usual = std::min(usual_tokens, most);
    ModelSpec spec{.name = c.name};
    spec.axes = {{.name = "batch"},
                 {.name = "seq", .usual = usual, .most = most, .most_is = "max_position_embeddings"},
                 {.name = "phase"},
                 {.name = "past", .usual = usual - 1, .most = most - 1, .most_is = "largest past"}};
    spec.description = fmt::format(
        "{}: hidden_size {}, num_hidden_layers {}, num_attention_heads {}, num_key_value_heads {}, head_dim {}, intermediate_size {}, vocab_size {}, max_position_embeddings {}, rms_norm_eps {}, {}, qkv_bias {}, o_bias {}, mlp_bias {}, qk_norm {}, initializer_range {}, tie_word_embeddings {}",
        c.name, c.hidden_size, c.num_hidden_layers, c.num_attention_heads, c.num_key_value_heads, c.head_dim,
        c.intermediate_size, c.vocab_size, c.max_position_embeddings, c.rms_norm_eps, described(c.rope), c.qkv_bias,
        c.o_bias, c.mlp_bias, c.qk_norm, c.initializer_range, c.tie_word_embeddings);
    if (c.sliding_window > 0) {
        std::string layers;
        for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) layers += c.window_of(i) > 0 ? 's' : 'f';
        const bool all = layers.find('f') == std::string::npos;
        spec.description += fmt::format(", sliding_window {}{}", c.sliding_window, all ? "" : " in " + layers);
    }
    spec.build_at = [c](const ModelPoint& point) {
        const std::int64_t batch = point.count("batch");
        if (point.word("phase") == "decode") return make_llama(c, batch, 1, point.count("past"));
        return make_llama(c, batch, point.count("seq"), 0);
    };
    return spec;
}

std::vector<ModelSpec> llama_models() { return specs({"llama-3.2-1b", "llama-3.1-8b"}); }
std::vector<ModelSpec> mistral_models() { return specs({"mistral-7b"}); }
std::vector<ModelSpec> qwen3_models() { return specs({"qwen3-0.6b"}); }

Model make_llama(const LlamaConfig& config, std::int64_t batch, std::int64_t tokens, std::int64_t past) {
    if (batch < 1) throw UsageError(fmt::format("batch {} must be at least 1", batch));
    if (tokens < 1) throw UsageError(fmt::format("seq {} must be at least 1", tokens));
    if (past < 0) throw UsageError(fmt::format("past {} must be at least 0", past));
    if (past + tokens > config.max_position_embeddings)
        throw UsageError(fmt::format("{} tokens after {} are over {}'s max_position_embeddings {}", tokens, past,
                                     config.name, config.max_position_embeddings));
    return LlamaBuilder(config, batch, tokens, past).build();
}

}  // namespace kbench
