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

/// The names of each function in transformers (src/transformers/activations.py, ACT2CLS).
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

/// The activation; gelu_new where the key is absent, as in transformers. Null is refused: no function has that name.
Activation read_activation(const ConfigKeys& keys) {
    const std::string name =
        keys.is_null("activation_function") ? "null" : keys.text_or("activation_function", "gelu_new");
    const auto found = std::ranges::find(activation_names, name, &ActivationName::name);
    if (found == std::end(activation_names))
        keys.fail(fmt::format("activation_function '{}' is not supported; {} are", name,
                              fmt::join(activation_names | std::views::transform(&ActivationName::name), ", ")));
    return found->function;
}

/// Heads that transformers puts on a GPT-2, with a note for those that compute something other than kbench does:
/// logits of the next token.
struct Head {
    std::string_view name, note;
};
constexpr Head heads[] = {
    {"GPT2LMHeadModel", ""},
    {"GPT2Model", "has no head; kbench computes the logits of the next token behind it"},
    {"GPT2DoubleHeadsModel", "has a second head, for choices; kbench computes the logits of the next token alone"},
};

void look_at_heads(const ConfigKeys& keys) {
    for (const std::string& architecture : keys.texts("architectures")) {
        std::string_view name = architecture;
        for (const std::string_view framework : {"TF", "Flax"})
            if (name.starts_with(framework)) name.remove_prefix(framework.size());
        const auto* head = std::ranges::find(heads, name, &Head::name);
        if (head == std::end(heads))
            keys.fail(
                fmt::format("architectures has '{}'; kbench computes a GPT2LMHeadModel", keys.shown(architecture)));
        if (!head->note.empty()) keys.note(fmt::format("{} {}", head->name, head->note));
    }
}

Gpt2Config config_of(const ConfigKeys& keys) {
    if (const std::string type = keys.text_or("model_type", "gpt2"); type != "gpt2")
        keys.fail(fmt::format("model_type '{}' is not supported; it must be 'gpt2'", type));
    constexpr const char* needed = "a GPT-2 config.json needs n_embd, n_layer, n_head, vocab_size and n_positions";
    Gpt2Config config{};
    config.name = keys.text_or("_name_or_path", "");
    if (config.name.empty()) config.name = std::filesystem::path(keys.path()).stem().string();
    config.n_embd = keys.required_integer("n_embd", needed);
    config.n_layer = keys.required_integer("n_layer", needed);
    keys.require_few_layers("n_layer", config.n_layer);
    config.n_head = keys.required_integer("n_head", needed);
    config.vocab_size = keys.required_integer("vocab_size", needed);
    config.n_ctx = keys.required_integer("n_positions", needed);
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
    look_at_heads(keys);
    return config;
}

}  // namespace

Gpt2Config parse_gpt2_config(const std::string& text, const std::string& path) {
    return config_of(ConfigKeys(text, path, gpt2_keys()));
}

ModelSpec read_gpt2(const std::string& text, const std::string& path) {
    const ConfigKeys keys(text, path, gpt2_keys());
    ModelSpec spec = gpt2_spec(config_of(keys));
    spec.configuration = keys.read();
    for (ReadKey& key : spec.configuration)
        if (key.key == "n_inner" && key.from.empty()) key.value = "4 * n_embd";
    spec.notes = keys.notes();
    return spec;
}

}  // namespace kbench
