// Reads a Hugging Face GPT-2 config.json.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/gpt2.h"

namespace kbench {
namespace {

using Json = nlohmann::json;

/// A value as it stands in the file, cut to what fits in a line.
std::string shown(const Json& value) {
    constexpr std::size_t longest = 60;
    const std::string text = value.dump(-1, ' ', true);
    return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

/// The keys of one file, each read with its type checked.
class Keys {
  public:
    Keys(const std::string& text, std::string path) : path_(std::move(path)) {
        try {
            json_ = Json::parse(text);
        } catch (const Json::exception& error) {
            fail(fmt::format("not JSON: {}", error.what()));
        }
        if (!json_.is_object()) fail(fmt::format("holds {}; a config.json is an object of keys", shown(json_)));
    }

    [[noreturn]] void fail(const std::string& reason) const { throw UsageError(fmt::format("{}: {}", path_, reason)); }

    /// Nothing for a key that is absent or null, which Hugging Face writes for "the default".
    const Json* find(const char* key) const {
        const auto found = json_.find(key);
        return found == json_.end() || found->is_null() ? nullptr : &*found;
    }

    std::int64_t required_integer(const char* key) const {
        const Json* value = find(key);
        if (!value)
            fail(fmt::format(
                "key '{}' is missing; a GPT-2 config.json needs n_embd, n_layer, n_head, vocab_size and n_positions",
                key));
        return integer(key, *value);
    }
    std::int64_t integer_or(const char* key, std::int64_t otherwise) const {
        const Json* value = find(key);
        return value ? integer(key, *value) : otherwise;
    }
    double number_or(const char* key, double otherwise) const {
        const Json* value = find(key);
        if (!value) return otherwise;
        if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() <= 0)
            wrong(key, *value, "a number above 0");
        return value->get<double>();
    }
    bool flag_or(const char* key, bool otherwise) const {
        const Json* value = find(key);
        if (!value) return otherwise;
        if (!value->is_boolean()) wrong(key, *value, "true or false");
        return value->get<bool>();
    }
    std::string text_or(const char* key, const std::string& otherwise) const {
        const Json* value = find(key);
        if (!value) return otherwise;
        if (!value->is_string()) wrong(key, *value, "a string");
        return value->get<std::string>();
    }

  private:
    [[noreturn]] void wrong(const char* key, const Json& value, const std::string& right) const {
        fail(fmt::format("key '{}' is {}; it must be {}", key, shown(value), right));
    }
    /// The bound keeps every product of three sizes within double's exact integers and one of two within int64.
    std::int64_t integer(const char* key, const Json& value) const {
        constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
        const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                          value.get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
        if (!fits) wrong(key, value, fmt::format("an integer from 1 to {}", largest));
        return value.get<std::int64_t>();
    }

    std::string path_;
    Json json_;
};

}  // namespace

Gpt2Config parse_gpt2_config(const std::string& text, const std::string& path) {
    const Keys keys(text, path);
    if (const std::string type = keys.text_or("model_type", "gpt2"); type != "gpt2")
        keys.fail(fmt::format("model_type '{}' is not supported; it must be 'gpt2'", type));
    const std::string activation = keys.text_or("activation_function", "gelu_new");
    if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
        keys.fail(
            fmt::format("activation_function '{}' is not supported; gelu_new and gelu_pytorch_tanh are", activation));

    Gpt2Config config{};
    config.name = keys.text_or("_name_or_path", "");
    if (config.name.empty()) config.name = std::filesystem::path(path).stem().string();
    config.n_embd = keys.required_integer("n_embd");
    config.n_layer = keys.required_integer("n_layer");
    config.n_head = keys.required_integer("n_head");
    config.vocab_size = keys.required_integer("vocab_size");
    // Files older than n_positions call it n_ctx; those with both give them the same value.
    config.n_ctx = keys.required_integer(!keys.find("n_positions") && keys.find("n_ctx") ? "n_ctx" : "n_positions");
    config.n_inner = keys.integer_or("n_inner", config.n_inner);
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
