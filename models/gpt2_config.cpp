// Reads a Hugging Face GPT-2 config.json.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <ranges>

#include "models/base/config_keys.h"
#include "models/gpt2.h"

namespace kbench {
namespace {

/// The names that transformers has for each (src/transformers/activations.py, ACT2CLS).
struct ActivationName {
    std::string_view name;
    Activation function;
};
constexpr ActivationName activation_names[] = {
    {"gelu_new", Activation::gelu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_python_tanh", Activation::gelu_tanh},
    {"gelu_accurate", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_fast},
    {"gelu", Activation::gelu_erf},
    {"gelu_python", Activation::gelu_erf},
    {"quick_gelu", Activation::quick_gelu},
    {"relu", Activation::relu},
    {"silu", Activation::silu},
    {"swish", Activation::silu},
    {"tanh", Activation::tanh},
};

/// gelu_new where the key is absent, as transformers has it. It takes no null: there is no such function.
Activation read_activation(const ConfigKeys& keys) {
    const std::string name =
        keys.is_null("activation_function") ? "null" : keys.text_or("activation_function", "gelu_new");
    const auto found = std::ranges::find(activation_names, name, &ActivationName::name);
    if (found == std::end(activation_names))
        keys.fail(fmt::format("activation_function '{}' is not supported; {} are", name,
                              fmt::join(activation_names | std::views::transform(&ActivationName::name), ", ")));
    return found->function;
}

}  // namespace

Gpt2Config parse_gpt2_config(const std::string& text, const std::string& path) {
    const ConfigKeys keys(text, path);
    if (const std::string type = keys.text_or("model_type", "gpt2"); type != "gpt2")
        keys.fail(fmt::format("model_type '{}' is not supported; it must be 'gpt2'", type));
    constexpr const char* needed = "a GPT-2 config.json needs n_embd, n_layer, n_head, vocab_size and n_positions";
    Gpt2Config config{};
    config.name = keys.text_or("_name_or_path", "");
    if (config.name.empty()) config.name = std::filesystem::path(path).stem().string();
    config.n_embd = keys.required_integer("n_embd", needed);
    config.n_layer = keys.required_integer("n_layer", needed);
    keys.require_few_layers("n_layer", config.n_layer);
    config.n_head = keys.required_integer("n_head", needed);
    config.vocab_size = keys.required_integer("vocab_size", needed);
    // Files older than n_positions call it n_ctx; those with both give them the same value.
    config.n_ctx =
        keys.required_integer(!keys.has("n_positions") && keys.has("n_ctx") ? "n_ctx" : "n_positions", needed);
    config.n_inner = keys.integer_or("n_inner", config.n_inner);
    config.activation = read_activation(keys);
    config.layer_norm_epsilon = keys.number_or("layer_norm_epsilon", config.layer_norm_epsilon);
    config.scale_attn_weights = keys.flag_or("scale_attn_weights", config.scale_attn_weights);
    config.scale_attn_by_inverse_layer_idx =
        keys.flag_or("scale_attn_by_inverse_layer_idx", config.scale_attn_by_inverse_layer_idx);
    config.reorder_and_upcast_attn = keys.flag_or("reorder_and_upcast_attn", config.reorder_and_upcast_attn);
    config.initializer_range = keys.number_or("initializer_range", config.initializer_range);
    config.tie_word_embeddings = keys.flag_or("tie_word_embeddings", config.tie_word_embeddings);
    if (config.n_embd % config.n_head != 0)
        keys.fail(fmt::format("n_embd {} is not a multiple of n_head {}; a head takes n_embd / n_head columns",
                              config.n_embd, config.n_head));
    return config;
}

}  // namespace kbench
