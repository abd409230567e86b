// Llama and the families that share its layers, as layers of ops: Llama 2 and 3, Mistral, Qwen2, Qwen3.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec.h"

namespace kbench {

/// How rotary embeddings are stretched beyond the length that a model was trained for: the `rope_type`s of
/// transformers' modeling_rope_utils.py.
enum class RopeType { plain, linear, llama3, yarn };

struct Rope {
    RopeType type = RopeType::plain;
    double theta = 10000;
    double factor = 1;                                 ///< for linear, llama3 and yarn
    double original_length = 0;                        ///< for llama3 and yarn: tokens that the model was trained for
    double low_freq_factor = 1, high_freq_factor = 4;  ///< for llama3
    double beta_fast = 32, beta_slow = 1;              ///< for yarn
    double attention_factor = 1;                       ///< for yarn: scales cosines and sines
    bool truncate = true;                              ///< for yarn: the ramp begins and ends at whole columns
    bool operator==(const Rope&) const = default;
};

/// Radians a token of each pair of a head's columns.
std::vector<double> rope_frequencies(const Rope& rope, std::int64_t head_size);

/// The keys of a Hugging Face config.json that change what is computed.
struct LlamaConfig {
    std::string name;
    std::int64_t hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
    std::int64_t intermediate_size, vocab_size;
    std::int64_t max_position_embeddings;  ///< longest sequence
    double rms_norm_eps = 1e-6;
    Rope rope = {};
    bool qkv_bias = false, o_bias = false, mlp_bias = false;
    bool qk_norm = false;                   ///< Qwen3's norms of each head of q and k
    std::int64_t sliding_window = 0;        ///< how many keys a token sees; 0: all
    std::vector<bool> sliding_layers = {};  ///< which layers have the window; empty: all
    double initializer_range = 0.02;
    bool tie_word_embeddings = false;

    std::int64_t window_of(std::int64_t layer) const {
        return sliding_layers.empty() || sliding_layers[static_cast<std::size_t>(layer)] ? sliding_window : 0;
    }
};

/// Parses the text of a `config.json`. Throws UsageError that names the missing or wrong key; `path` appears in it.
LlamaConfig parse_llama_config(const std::string& text, const std::string& path);

/// The published configurations that are built in.
std::span<const LlamaConfig> llama_configs();
const LlamaConfig& llama_config(std::string_view name);  ///< one of llama_configs()

/// The registry's rows, one a model_type. Axes: batch; phase forward or decode; of the forward seq, and of decode past,
/// both up to max_position_embeddings.
ModelSpec llama_spec(const LlamaConfig& config);
std::vector<ModelSpec> llama_models();
std::vector<ModelSpec> mistral_models();
std::vector<ModelSpec> qwen3_models();
ModelSpec read_llama(const std::string& text, const std::string& path);
/// What each key of a config.json means to these families: llama_keys.cpp.
const FamilyKeys& llama_keys();

/// The step that makes the logits of `tokens` more tokens of each sequence, after `past` of them whose keys and values
/// lie in the caches layers.N.self_attn.key_cache and value_cache. The forward is the step after none. Inputs: tokens
/// [batch, tokens], and positions [batch, 1], which are `past` unless a file says less. It has no backward: attention
/// over a cache has none. Throws UsageError when past + tokens is over max_position_embeddings.
Model make_llama(const LlamaConfig& config, std::int64_t batch, std::int64_t tokens, std::int64_t past);

}  // namespace kbench
