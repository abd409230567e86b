// Reads a Hugging Face config.json of a Llama, a Mistral, a Qwen2 or a Qwen3. Defaults are those of transformers'
// configuration of each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <ranges>

#include "models/base/config_keys.h"
#include "models/llama.h"

namespace kbench {
namespace {

/// What a model_type fixes, or defaults to where a file says nothing.
struct Family {
    std::string_view type, head;    ///< `model_type`, and the class with the language model's head
    std::int64_t kv_heads;          ///< 0: as many as query heads
    std::int64_t head_dim;          ///< 0: hidden_size / num_attention_heads
    bool qkv_bias;                  ///< without a bias of o_proj, and without a key
    bool attention_bias, mlp_bias;  ///< whether there are such keys
    bool qk_norm;
    bool window, window_of_layers;  ///< whether sliding_window counts; whether it needs use_sliding_window
};
constexpr Family families[] = {
    {"llama", "LlamaForCausalLM", 0, 0, false, true, true, false, false, false},
    {"mistral", "MistralForCausalLM", 8, 0, false, false, false, false, true, false},
    {"qwen2", "Qwen2ForCausalLM", 32, 0, true, false, false, false, true, true},
    {"qwen3", "Qwen3ForCausalLM", 32, 128, false, true, false, true, true, true},
};

const Family& family_of(const ConfigKeys& keys) {
    const std::string type = keys.text_or("model_type", "llama");
    const auto* found = std::ranges::find(families, type, &Family::type);
    if (found == std::end(families))
        keys.fail(fmt::format("model_type '{}' is not supported; it must be one of {}", keys.shown(type),
                              fmt::join(families | std::views::transform(&Family::type), ", ")));
    return *found;
}

struct RopeName {
    std::string_view name;
    RopeType type;
};
constexpr RopeName rope_names[] = {
    {"default", RopeType::plain}, {"linear", RopeType::linear}, {"llama3", RopeType::llama3}, {"yarn", RopeType::yarn}};

/// YaRN's factor of scores, as its root: queries and keys have it both.
double magnitude(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

void read_yarn(const ConfigKeys& keys, Rope& rope) {
    rope.beta_fast = keys.number_or("rope_scaling.beta_fast", rope.beta_fast);
    rope.beta_slow = keys.number_or("rope_scaling.beta_slow", rope.beta_slow);
    rope.truncate = keys.flag_or("rope_scaling.truncate", rope.truncate);
    rope.attention_factor = magnitude(rope.factor, 1);
    if (keys.has("rope_scaling.mscale") && keys.has("rope_scaling.mscale_all_dim"))
        rope.attention_factor = magnitude(rope.factor, keys.number_or("rope_scaling.mscale", 1)) /
                                magnitude(rope.factor, keys.number_or("rope_scaling.mscale_all_dim", 1));
    rope.attention_factor = keys.number_or("rope_scaling.attention_factor", rope.attention_factor);
}

Rope read_rope(const ConfigKeys& keys, std::int64_t longest) {
    Rope rope;
    rope.theta = keys.number_or("rope_theta", rope.theta);
    const std::string name = keys.text_or("rope_scaling.rope_type", "default");
    const auto* found = std::ranges::find(rope_names, name, &RopeName::name);
    if (found == std::end(rope_names))
        keys.fail(fmt::format("rope_type '{}' is not supported; {} are", keys.shown(name),
                              fmt::join(rope_names | std::views::transform(&RopeName::name), ", ")));
    rope.type = found->type;
    if (rope.type == RopeType::plain) return rope;
    if (!keys.has("rope_scaling.factor")) keys.fail(fmt::format("a rope_type of '{}' needs a factor", name));
    rope.factor = keys.number_or("rope_scaling.factor", rope.factor);
    if (rope.type == RopeType::linear) return rope;
    rope.original_length =
        static_cast<double>(keys.integer_or("rope_scaling.original_max_position_embeddings", longest));
    if (rope.type == RopeType::yarn) {
        read_yarn(keys, rope);
        return rope;
    }
    rope.low_freq_factor = keys.number_or("rope_scaling.low_freq_factor", rope.low_freq_factor);
    rope.high_freq_factor = keys.number_or("rope_scaling.high_freq_factor", rope.high_freq_factor);
    if (rope.high_freq_factor <= rope.low_freq_factor)
        keys.fail(fmt::format("high_freq_factor {} must be over low_freq_factor {}", rope.high_freq_factor,
                              rope.low_freq_factor));
    return rope;
}

void read_window(const ConfigKeys& keys, const Family& family, LlamaConfig& config) {
    constexpr std::int64_t usual_window = 4096, usual_full_layers = 28;  // Mistral's and Qwen's
    if (!family.window_of_layers && keys.has("layer_types"))
        keys.note(fmt::format("layer_types is not read: all layers of a {} attend alike", family.type));
    if (!family.window) {
        if (keys.has("sliding_window")) keys.fail("a llama has no sliding_window; transformers reads none");
        return;
    }
    const bool is_used = !family.window_of_layers || keys.flag_or("use_sliding_window", false);
    if (!is_used || keys.is_null("sliding_window")) return;
    config.sliding_window = keys.integer_or("sliding_window", usual_window);
    if (!family.window_of_layers) return;
    const std::int64_t full = keys.integer_or("max_window_layers", usual_full_layers);
    for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) config.sliding_layers.push_back(i >= full);
    const std::vector<std::string> types = keys.texts("layer_types");
    if (types.empty()) return;
    if (static_cast<std::int64_t>(types.size()) != config.num_hidden_layers)
        keys.fail(
            fmt::format("layer_types has {} layers; num_hidden_layers is {}", types.size(), config.num_hidden_layers));
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (types[i] != "sliding_attention" && types[i] != "full_attention")
            keys.fail(fmt::format("layer_types has '{}'; it must be full_attention or sliding_attention",
                                  keys.shown(types[i])));
        config.sliding_layers[i] = types[i] == "sliding_attention";
    }
}

void look_at_heads(const ConfigKeys& keys, const Family& family) {
    for (const std::string& architecture : keys.texts("architectures"))
        if (architecture != family.head)
            keys.fail(
                fmt::format("architectures has '{}'; kbench computes a {}", keys.shown(architecture), family.head));
}

LlamaConfig config_of(const ConfigKeys& keys) {
    const Family& family = family_of(keys);
    const std::string needed = fmt::format(
        "a {} config.json needs hidden_size, num_hidden_layers, num_attention_heads, intermediate_size, vocab_size and max_position_embeddings",
        family.type);
    LlamaConfig config{};
    config.name = keys.text_or("_name_or_path", "");
    if (config.name.empty()) config.name = std::filesystem::path(keys.path()).stem().string();
    config.hidden_size = keys.required_integer("hidden_size", needed);
    config.num_hidden_layers = keys.required_integer("num_hidden_layers", needed);
    keys.require_few_layers("num_hidden_layers", config.num_hidden_layers);
    config.num_attention_heads = keys.required_integer("num_attention_heads", needed);
    const std::int64_t heads = config.num_attention_heads;
    config.num_key_value_heads = keys.integer_or(
        "num_key_value_heads", family.kv_heads > 0 && !keys.is_null("num_key_value_heads") ? family.kv_heads : heads);
    if (family.head_dim == 0 && !keys.has("head_dim") && config.hidden_size % heads != 0)
        keys.fail(fmt::format("hidden_size {} is not a multiple of num_attention_heads {}, and there is no head_dim",
                              config.hidden_size, heads));
    config.head_dim = keys.integer_or("head_dim", family.head_dim > 0 ? family.head_dim : config.hidden_size / heads);
    if (config.head_dim % 2 != 0)
        keys.fail(fmt::format("head_dim {} is odd; rotary embeddings rotate pairs of columns", config.head_dim));
    if (heads % config.num_key_value_heads != 0)
        keys.fail(fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}", heads,
                              config.num_key_value_heads));
    config.intermediate_size = keys.required_integer("intermediate_size", needed);
    config.vocab_size = keys.required_integer("vocab_size", needed);
    config.max_position_embeddings = keys.required_integer("max_position_embeddings", needed);
    if (const std::string act = keys.text_or("hidden_act", "silu"); act != "silu" && act != "swish")
        keys.fail(fmt::format("hidden_act '{}' is not supported; the gate must be silu", keys.shown(act)));
    config.rms_norm_eps = keys.number_or("rms_norm_eps", config.rms_norm_eps);
    config.rope = read_rope(keys, config.max_position_embeddings);
    const auto bias_of = [&](const char* key, bool has_key) {
        const bool has_bias = keys.flag_or(key, false);
        if (has_bias && !has_key)
            keys.fail(fmt::format("key '{}' is true; transformers' {} does not read it", key, family.type));
        return has_bias;
    };
    config.o_bias = bias_of("attention_bias", family.attention_bias);
    config.qkv_bias = family.qkv_bias || config.o_bias;
    config.mlp_bias = bias_of("mlp_bias", family.mlp_bias);
    config.qk_norm = family.qk_norm;
    read_window(keys, family, config);
    config.initializer_range = keys.number_or("initializer_range", config.initializer_range);
    config.tie_word_embeddings = keys.flag_or("tie_word_embeddings", config.tie_word_embeddings);
    look_at_heads(keys, family);
    return config;
}

}  // namespace

LlamaConfig parse_llama_config(const std::string& text, const std::string& path) {
    return config_of(ConfigKeys(text, path, llama_keys()));
}

ModelSpec read_llama(const std::string& text, const std::string& path) {
    const ConfigKeys keys(text, path, llama_keys());
    ModelSpec spec = llama_spec(config_of(keys));
    spec.configuration = keys.read();
    spec.notes = keys.notes();
    return spec;
}

}  // namespace kbench
