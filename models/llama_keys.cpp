// The keys of a config.json of a Llama, a Mistral, a Qwen2 or a Qwen3: those of transformers' configurations, and those
// of other decoders that turn up in such files.
#include "models/llama.h"

namespace kbench {
namespace {

constexpr UnderstoodKeys llama_understood[] = {
    {"model_type", "the family"},
    {"_name_or_path", "its name"},
    {"architectures", "which head there is"},
    {"hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim intermediate_size vocab_size max_position_embeddings",
     "sizes"},
    {"hidden_act", "between the two products of an MLP"},
    {"rms_norm_eps", "in every norm"},
    {"attention_bias mlp_bias", "biases of Llama and Qwen3"},
    {"sliding_window use_sliding_window max_window_layers layer_types", "how far a token sees, and in which layers"},
    {"initializer_range", "the deviation of random weights"},
    {"tie_word_embeddings", "whether the head has a weight of its own"},
    {"rope_theta", "the base of rotary embeddings"},
    {"rope_scaling.rope_type rope_scaling.factor rope_scaling.original_max_position_embeddings rope_scaling.low_freq_factor rope_scaling.high_freq_factor rope_scaling.beta_fast rope_scaling.beta_slow rope_scaling.attention_factor rope_scaling.mscale rope_scaling.mscale_all_dim rope_scaling.truncate",
     "how rotary embeddings are stretched"},
    // Files older than rope_type, and those of transformers 5, which have all of it in rope_parameters.
    {"rope_scaling.type rope_parameters.rope_type rope_parameters.type", "other names", "rope_scaling.rope_type"},
    {"rope_parameters.rope_theta rope_scaling.rope_theta", "another place", "rope_theta"},
    {"rope_parameters.factor", "another place", "rope_scaling.factor"},
    {"rope_parameters.original_max_position_embeddings", "another place",
     "rope_scaling.original_max_position_embeddings"},
    {"rope_parameters.low_freq_factor", "another place", "rope_scaling.low_freq_factor"},
    {"rope_parameters.high_freq_factor", "another place", "rope_scaling.high_freq_factor"},
    {"rope_parameters.beta_fast", "another place", "rope_scaling.beta_fast"},
    {"rope_parameters.beta_slow", "another place", "rope_scaling.beta_slow"},
    {"rope_parameters.attention_factor", "another place", "rope_scaling.attention_factor"},
    {"rope_parameters.mscale", "another place", "rope_scaling.mscale"},
    {"rope_parameters.mscale_all_dim", "another place", "rope_scaling.mscale_all_dim"},
    {"rope_parameters.truncate", "another place", "rope_scaling.truncate"},
};

constexpr RefusedKeys llama_refused[] = {
    {"partial_rotary_factor rotary_pct", "[1]", "kbench rotates all columns of a head"},
    {"original_max_position_embeddings", "[]", "kbench reads it in rope_scaling or rope_parameters"},
    {"short_factor long_factor", "[]", "longrope is not supported"},
    {"quantization_config quantization compression_config sparsity_config", "[{}]",
     "kbench computes with weights that are not quantized"},
    {"load_in_8bit load_in_4bit", "[false]", "kbench computes with weights that are not quantized"},
    {"adapters adapter_config peft_config peft_type lora lora_config lora_r lora_rank lora_alpha target_modules",
     "[{}, [], 0, false]", "kbench adds no adapters to a weight: merge them first"},
    {"auto_map", "[{}]", "the model is code of its own, which kbench does not run"},
    {"attn_logit_softcapping final_logit_softcapping attn_logit_cap", "[0]", "kbench caps no scores or logits"},
    {"logit_scale embedding_multiplier residual_multiplier attention_multiplier logits_scaling query_pre_attn_scalar",
     "[1]", "kbench has no such factor"},
    {"num_experts num_local_experts n_experts moe num_experts_per_tok moe_num_experts", "[0, 1, false]",
     "kbench's Llama has one MLP a layer"},
    {"position_embedding_type", "[\"rope\", \"rotary\"]", "kbench's positions are rotations"},
    {"no_rope_layers", "[[]]", "kbench's positions are rotations in every layer"},
    {"qkv_bias use_qkv_bias bias use_bias", "[]", "kbench reads attention_bias and mlp_bias", "attention_bias"},
    {"n_embd n_layer n_head n_positions n_inner n_ctx dim n_layers n_heads n_kv_heads", "[]",
     "kbench reads transformers' names, such as hidden_size"},
};

constexpr HarmlessKeys llama_harmless[] = {
    {"transformers_version torch_dtype dtype name _commit_hash", "how it was saved; --precision chooses the precision"},
    {"attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal use_cache gradient_checkpointing chunk_size_feed_forward pretraining_tp _flash_attn_2_enabled",
     "how it is computed, not what"},
    {"attention_dropout hidden_dropout dropout attn_pdrop resid_pdrop embd_pdrop", "an evaluation has no dropout"},
    {"num_labels id2label label2id problem_type finetuning_task task_specific_params",
     "for heads and tasks other than the next token"},
    {"is_decoder is_encoder_decoder add_cross_attention tie_encoder_decoder decoder_start_token_id",
     "these families are decoders whatever they say"},
    {"bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id tokenizer_class prefix max_length min_length do_sample temperature top_k top_p repetition_penalty generation_config",
     "what is done with tokens and logits outside the model"},
    {"return_dict output_hidden_states output_attentions keys_to_ignore_at_inference", "what else is returned"},
};

}  // namespace

const FamilyKeys& llama_keys() {
    static constexpr FamilyKeys keys{"a Llama", llama_understood, llama_refused, llama_harmless};
    return keys;
}

}  // namespace kbench
