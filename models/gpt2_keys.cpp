// The keys of a GPT-2 config.json: those of transformers' GPT2Config, those of the configurations that it inherits
// from, and those of other decoders that turn up in files with model_type gpt2.
#include "models/gpt2.h"

namespace kbench {
namespace {

constexpr UnderstoodKeys gpt2_understood[] = {
    {"model_type", "the family"},
    {"_name_or_path", "its name"},
    {"architectures", "which head there is"},
    {"n_embd n_layer n_head vocab_size n_positions n_inner", "sizes"},
    {"activation_function", "between the two products of an MLP"},
    {"layer_norm_epsilon", "in every layer norm"},
    {"scale_attn_weights scale_attn_by_inverse_layer_idx", "what scores are divided by"},
    {"reorder_and_upcast_attn", "scores in fp32"},
    {"initializer_range", "the deviation of random weights"},
    {"tie_word_embeddings", "whether the head has a weight of its own"},
    // transformers' GPT2Config.attribute_map
    {"hidden_size", "transformers' common name", "n_embd"},
    {"num_hidden_layers", "transformers' common name", "n_layer"},
    {"num_attention_heads", "transformers' common name", "n_head"},
    {"max_position_embeddings", "transformers' common name", "n_positions"},
    {"n_ctx", "what files older than n_positions call it", "n_positions"},
};

constexpr RefusedKeys gpt2_refused[] = {
    {"pruned_heads", "[{}, []]", "kbench keeps every head of every layer"},
    {"add_cross_attention use_cross_attention is_encoder_decoder", "[false]", "kbench's GPT-2 has no cross-attention"},
    {"cross_attention_hidden_size", "[]", "kbench's GPT-2 has no cross-attention"},
    {"quantization_config quantization compression_config sparsity_config", "[{}]",
     "kbench computes with weights that are not quantized"},
    {"load_in_8bit load_in_4bit", "[false]", "kbench computes with weights that are not quantized"},
    {"adapters adapter_config peft_config peft_type lora lora_config lora_r lora_rank lora_alpha target_modules",
     "[{}, [], 0, false]", "kbench adds no adapters to a weight: merge them first"},
    {"auto_map", "[{}]", "the model is code of its own, which kbench does not run"},
    {"attention_head_type", "[\"multihead\"]", "kbench's heads have keys and values of their own"},
    {"multi_query", "[false]", "kbench's heads have keys and values of their own"},
    {"num_key_value_heads num_kv_heads n_head_kv", "[]", "kbench's heads have keys and values of their own", "n_head"},
    {"head_dim", "[]", "a head of kbench's has n_embd / n_head columns"},
    {"position_embedding_type", "[\"absolute\", \"learned\", \"learned_absolute\"]",
     "kbench's positions are learned and absolute"},
    {"rope_theta rope_scaling rope_parameters rotary rotary_dim rotary_pct rotary_emb_base rotary_emb_fraction partial_rotary_factor alibi use_alibi use_rotary",
     "[false, 0, {}]", "kbench's positions are learned and absolute"},
    {"sliding_window attention_window window_size attention_types attention_layers layer_types", "[]",
     "every token attends to all before it"},
    {"attn_logit_softcapping final_logit_softcapping attn_logit_cap", "[0]", "kbench caps no scores or logits"},
    {"qk_layernorm qk_layer_norm qk_norm", "[false]", "kbench's queries and keys are not normalised"},
    {"logit_scale embedding_multiplier residual_multiplier attention_multiplier mup_width_scale mup_embeddings_scale mup_output_alpha embeddings_scale width_scale",
     "[1]", "kbench has no such factor"},
    {"mup use_mup mup_scale_qk_dot_by_d scale_qk_dot_by_d", "[false]", "kbench has no such factor"},
    {"hidden_act activation hidden_activation act_fn afn", "[]", "GPT-2 calls it activation_function",
     "activation_function"},
    {"intermediate_size ffn_dim ffn_hidden_size d_inner d_ff inner_dim mlp_hidden_size", "[]", "GPT-2 calls it n_inner",
     "n_inner"},
    {"d_model hidden_dim dim n_embed embedding_size embed_dim word_embed_proj_dim", "[]", "GPT-2 calls it n_embd",
     "n_embd"},
    {"num_layers n_layers num_blocks depth", "[]", "GPT-2 calls it n_layer", "n_layer"},
    {"num_heads n_heads", "[]", "GPT-2 calls it n_head", "n_head"},
    {"block_size max_seq_len max_sequence_length", "[]",
     "GPT-2 calls it n_positions (nanoGPT's activation_function is gelu)", "n_positions"},
    {"bias use_bias attention_bias attn_bias mlp_bias add_bias_linear qkv_proj_bias out_proj_bias", "[true]",
     "every product of kbench's GPT-2 but the head has a bias"},
    {"lm_head_bias", "[false]", "the head of kbench's GPT-2 has no bias"},
    {"rms_norm use_rms_norm use_rmsnorm", "[false]", "kbench's GPT-2 has layer norms"},
    {"rms_norm_eps layer_norm_eps norm_epsilon norm_eps", "[]", "GPT-2 calls it layer_norm_epsilon",
     "layer_norm_epsilon"},
    {"norm_type normalization layer_norm_type normalization_type",
     "[\"layernorm\", \"layer_norm\", \"LayerNorm\", \"layer\"]", "kbench's GPT-2 has layer norms"},
    {"prenorm pre_norm do_layer_norm_before", "[true]", "a layer norm stands before attention and before the MLP"},
    {"parallel_residual use_parallel_residual parallel_attn parallel_block apply_residual_connection_post_layernorm",
     "[false]", "attention and the MLP follow each other, each added to what it read"},
    {"num_experts num_local_experts n_experts moe num_experts_per_tok moe_num_experts", "[0, 1, false]",
     "kbench's GPT-2 has one MLP a layer"},
    {"glu gated_mlp use_swiglu use_glu", "[false]", "kbench's MLP has no gate"},
    {"type_vocab_size", "[0]", "kbench's GPT-2 has no token types"},
};

constexpr HarmlessKeys gpt2_harmless[] = {
    {"transformers_version torch_dtype dtype use_bfloat16 torchscript name _commit_hash",
     "how it was saved; --precision chooses the precision"},
    {"attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal gradient_checkpointing chunk_size_feed_forward use_cache output_past use_flash_attn",
     "how it is computed, not what"},
    {"resid_pdrop embd_pdrop attn_pdrop dropout summary_first_dropout classifier_dropout hidden_dropout attention_dropout",
     "an evaluation has no dropout, and `kbench train` says that it has none"},
    {"summary_type summary_use_proj summary_activation summary_proj_to_labels num_labels _num_labels id2label label2id problem_type finetuning_task task_specific_params",
     "for heads and tasks other than the next token"},
    {"is_decoder tie_encoder_decoder decoder_start_token_id", "GPT-2 is a decoder whatever they say"},
    {"bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id tokenizer_class prefix predict_special_tokens max_length min_length max_new_tokens min_new_tokens do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids num_return_sequences forced_bos_token_id forced_eos_token_id remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens generation_config",
     "what is done with tokens and logits outside the model"},
    {"return_dict return_dict_in_generate output_hidden_states output_attentions output_scores tf_legacy_loss keys_to_ignore_at_inference",
     "what else is returned"},
};

}  // namespace

const FamilyKeys& gpt2_keys() {
    static constexpr FamilyKeys keys{"a GPT-2", gpt2_understood, gpt2_refused, gpt2_harmless};
    return keys;
}

}  // namespace kbench
