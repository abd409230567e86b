// GPT-2 (Radford et al., 2019) as layers of ops.
#pragma once

#include <cstdint>
#include <string>

#include "kbench/activation.h"
#include "models/spec.h"

namespace kbench {

/// The keys of a Hugging Face GPT-2 `config.json` that change what is computed.
struct Gpt2Config {
    std::string name;
    std::int64_t n_embd, n_layer, n_head;
    std::int64_t n_ctx = 1024;  ///< longest sequence (`n_positions`)
    std::int64_t vocab_size = 50257;
    std::int64_t n_inner = 0;  ///< width of the MLP; 0 means 4 * n_embd
    Activation activation = Activation::gelu_tanh;
    double layer_norm_epsilon = 1e-5;
    bool scale_attn_weights = true;
    bool scale_attn_by_inverse_layer_idx = false;
    bool reorder_and_upcast_attn = false;
    double initializer_range = 0.02;
    bool tie_word_embeddings = true;
};

enum class AttentionKind { fused, unfused };

/// Parses the text of a `config.json`. Throws UsageError that names the missing or wrong key; `path` appears in it.
Gpt2Config parse_gpt2_config(const std::string& text, const std::string& path);

/// The published configurations (Radford et al., 2019, table 2), and one with CodeParrot's options.
std::span<const Gpt2Config> gpt2_configs();
const Gpt2Config& gpt2_config(std::string_view name);  ///< one of gpt2_configs()

/// The registry's row. Axes: batch; phase forward, prefill or decode; of the forward and prefill seq up to n_ctx; of
/// the forward attention fused or unfused; of prefill new up to n_ctx - seq; of decode past up to n_ctx - 1.
ModelSpec gpt2_spec(const Gpt2Config& config);
std::vector<ModelSpec> gpt2_models();
ModelSpec read_gpt2(const std::string& text, const std::string& path);
/// What each key of a config.json means to this family: gpt2_keys.cpp.
const FamilyKeys& gpt2_keys();

/// The forward pass. Throws UsageError when seq is not in [1, n_ctx] or batch is not positive.
Model make_gpt2(const Gpt2Config& config, std::int64_t batch, std::int64_t seq, AttentionKind attention);

/// The pass over a prompt that fills the caches h.N.attn.key_cache and value_cache [batch, n_head, seq + more, head
/// size] and makes the logits [batch, 1, vocab] of the last token. Attention is fused. Throws as make_gpt2, and when
/// `more` is not in [0, n_ctx - seq].
Model make_gpt2_prefill(const Gpt2Config& config, std::int64_t batch, std::int64_t seq, std::int64_t more);

/// The step that makes the logits of one more token of each sequence, after `past` tokens whose keys and values lie in
/// the caches h.N.attn.key_cache and value_cache. Inputs: tokens [batch, 1], and positions [batch, 1], which are `past`
/// unless a file says less. Throws UsageError when past is not in [0, n_ctx) or batch is not positive.
Model make_gpt2_decode(const Gpt2Config& config, std::int64_t batch, std::int64_t past);

}  // namespace kbench
