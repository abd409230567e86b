// The Llama family: configurations as transformers writes them, frequencies, and what the layers are made of.
#include "models/llama.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kbench/error.h"
#include "models/ops/list.h"
#include "models/registry.h"

namespace kbench {
namespace {

using testing::HasSubstr;

/// A config.json with these keys beside those that every family needs.
std::string file(const std::string& more) {
    return R"({"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 80,
               "vocab_size": 101, "max_position_embeddings": 64, )" +
           more + "}";
}
LlamaConfig parsed(const std::string& more) { return parse_llama_config(file(more), "x/config.json"); }
std::string refusal(const std::string& more) {
    try {
        parsed(more);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(LlamaConfig, HasTheDefaultsOfItsModelType) {
    const LlamaConfig llama = parsed(R"("model_type": "llama")");
    EXPECT_EQ(llama.num_key_value_heads, 4);
    EXPECT_EQ(llama.head_dim, 12);
    EXPECT_EQ(llama.rms_norm_eps, 1e-6);
    EXPECT_EQ(llama.rope, Rope{});
    EXPECT_FALSE(llama.qkv_bias || llama.o_bias || llama.mlp_bias || llama.qk_norm || llama.tie_word_embeddings);
    EXPECT_EQ(llama.window_of(0), 0);

    const LlamaConfig mistral = parsed(R"("model_type": "mistral", "num_key_value_heads": 2)");
    EXPECT_EQ(mistral.window_of(1), 4096);
    EXPECT_EQ(parsed(R"("model_type": "mistral", "num_key_value_heads": 2, "sliding_window": null)").sliding_window, 0);

    const LlamaConfig qwen2 = parsed(R"("model_type": "qwen2", "num_key_value_heads": 2)");
    EXPECT_TRUE(qwen2.qkv_bias);
    EXPECT_FALSE(qwen2.o_bias || qwen2.qk_norm);
    EXPECT_EQ(qwen2.sliding_window, 0) << "use_sliding_window is false";

    const LlamaConfig qwen3 = parsed(R"("model_type": "qwen3", "num_key_value_heads": null)");
    EXPECT_TRUE(qwen3.qk_norm);
    EXPECT_FALSE(qwen3.qkv_bias);
    EXPECT_EQ(qwen3.head_dim, 128);
    EXPECT_EQ(qwen3.num_key_value_heads, 4) << "null is as many as query heads";
}

TEST(LlamaConfig, ReadsBiasesWhereItsModelTypeHasThem) {
    const LlamaConfig llama = parsed(R"("model_type": "llama", "attention_bias": true, "mlp_bias": true)");
    EXPECT_TRUE(llama.qkv_bias && llama.o_bias && llama.mlp_bias);
    EXPECT_THAT(refusal(R"("model_type": "mistral", "num_key_value_heads": 2, "attention_bias": true)"),
                HasSubstr("does not read it"));
}

TEST(LlamaConfig, SlidesInTheLayersThatQwenNames) {
    const std::string window =
        R"("model_type": "qwen2", "num_key_value_heads": 2, "use_sliding_window": true, "sliding_window": 8, )";
    const LlamaConfig counted = parsed(window + R"("max_window_layers": 1)");
    EXPECT_EQ(counted.window_of(0), 0);
    EXPECT_EQ(counted.window_of(1), 8);
    const LlamaConfig named = parsed(window + R"("layer_types": ["sliding_attention", "full_attention"])");
    EXPECT_EQ(named.window_of(0), 8);
    EXPECT_EQ(named.window_of(1), 0);
    EXPECT_THAT(refusal(window + R"("layer_types": ["sliding_attention"])"), HasSubstr("num_hidden_layers is 2"));
    EXPECT_THAT(refusal(R"("model_type": "llama", "sliding_window": 8)"), HasSubstr("no sliding_window"));
}

TEST(LlamaConfig, SaysThatOthersHaveNoTypesOfLayers) {
    const std::string types = R"(, "num_key_value_heads": 2, "layer_types": ["full_attention", "full_attention"])";
    EXPECT_THAT(read_llama(file(R"("model_type": "mistral")" + types), "c.json").notes,
                testing::ElementsAre("c.json: layer_types is not read: all layers of a mistral attend alike"));
    EXPECT_THAT(read_llama(file(R"("model_type": "qwen2")" + types), "c.json").notes, testing::IsEmpty());
}

TEST(LlamaConfig, ReadsRotationsFromEitherPlace) {
    const char* const old_way =
        R"("model_type": "llama", "rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
           "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16})";
    const char* const new_way =
        R"("model_type": "llama", "rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0,
           "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16})";
    const Rope rope{.type = RopeType::llama3, .theta = 5e5, .factor = 8, .original_length = 16};
    EXPECT_EQ(parsed(old_way).rope, rope);
    EXPECT_EQ(parsed(new_way).rope, rope);
    EXPECT_EQ(parsed(R"("model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.0})").rope,
              (Rope{.type = RopeType::linear, .factor = 2}));
    EXPECT_EQ(parsed(R"("model_type": "llama", "rope_scaling": null)").rope, Rope{});
    EXPECT_EQ(parsed(R"("model_type": "llama", "rope_scaling": {"type": "yarn", "factor": 4.0})").rope.attention_factor,
              0.1 * std::log(4.0) + 1);
    EXPECT_THAT(refusal(R"("model_type": "llama", "rope_scaling": {"type": "longrope", "factor": 2.0})"),
                HasSubstr("rope_type 'longrope' is not supported; default, linear, llama3, yarn are"));
    EXPECT_THAT(refusal(R"("model_type": "llama", "rope_scaling": {"type": "linear"})"), HasSubstr("needs a factor"));
    EXPECT_THAT(refusal(R"("model_type": "llama", "partial_rotary_factor": 0.5)"), HasSubstr("all columns"));
}

TEST(LlamaConfig, RefusesWhatItDoesNotCompute) {
    EXPECT_THAT(refusal(R"("model_type": "llama", "hidden_act": "gelu")"), HasSubstr("must be silu"));
    EXPECT_THAT(refusal(R"("model_type": "llama", "num_key_value_heads": 3)"), HasSubstr("not a multiple"));
    EXPECT_THAT(refusal(R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"])"),
                HasSubstr("computes a LlamaForCausalLM"));
    EXPECT_THAT(refusal(R"("model_type": "llama", "quantization_config": {"bits": 4})"), HasSubstr("not quantized"));
    EXPECT_THAT(refusal(R"("model_type": "mixtral")"), HasSubstr("must be one of llama, mistral, qwen2, qwen3"));
    EXPECT_THAT(refusal(R"("model_type": "llama", "head_dim": 7)"), HasSubstr("is odd"));
}

/// Numbers by transformers 5.24's modeling_rope_utils.py, which computes them in fp32.
TEST(Rope, FrequenciesAreThoseOfTransformers) {
    const auto near = [](const std::vector<double>& found, std::vector<double> expected) {
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i] / expected[i], 1, 1e-6) << i;
    };
    near(rope_frequencies({.theta = 10000}, 8), {1, 0.1, 0.01, 0.001});
    near(rope_frequencies({.type = RopeType::linear, .theta = 10000, .factor = 4}, 8), {0.25, 0.025, 0.0025, 0.00025});
    near(rope_frequencies({.type = RopeType::llama3, .theta = 500000, .factor = 8, .original_length = 8192}, 16),
         {1.0, 0.193922758, 0.0376060307, 0.00729266508, 0.000524846022, 3.42810235e-05, 6.64786967e-06,
          1.28917316e-06});
    const Rope yarn{.type = RopeType::yarn, .factor = 4, .original_length = 2048};
    near(rope_frequencies(yarn, 16),
         {1.0, 0.316227764, 0.100000001, 0.025693506, 0.00624999963, 0.00138349656, 0.000250000012, 7.90569466e-05});
    Rope ragged = yarn;
    ragged.truncate = false;
    ragged.beta_fast = 16;
    ragged.beta_slow = 2;
    near(rope_frequencies(ragged, 16),
         {1.0, 0.316227764, 0.100000001, 0.0266074985, 0.00426161895, 0.000790569466, 0.000250000012, 7.90569466e-05});
}

TEST(Rope, YarnScalesByBothOfItsMagnitudes) {
    const LlamaConfig config = parsed(
        R"("model_type": "llama", "rope_scaling": {"type": "yarn", "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 0.3})");
    EXPECT_NEAR(config.rope.attention_factor, 1.0532376815143234, 1e-12);
}

TEST(Llama, BuiltInModelsHaveTheirCheckpointsParameterCounts) {
    const auto parameters = [](std::string_view name) {
        return find_model(name).build({.counts = {{"seq", 1}}}).parameter_count();
    };
    EXPECT_EQ(parameters("llama-3.2-1b"), 1'235'814'400);
    EXPECT_EQ(parameters("llama-3.1-8b"), 8'030'261'248);
    EXPECT_EQ(parameters("mistral-7b"), 7'241'732'096);
    EXPECT_EQ(parameters("qwen3-0.6b"), 596'049'920);
}

TEST(Llama, WeightsAreWhatTheCheckpointHasOneBelowTheOther) {
    LlamaConfig config = parsed(R"("model_type": "qwen3", "num_key_value_heads": 2, "attention_bias": true)");
    const Model model = make_llama(config, 1, 1, 0);
    const auto named = [&](const char* name) {
        const auto found = std::ranges::find(model.tensors, name, &Tensor::name);
        EXPECT_NE(found, model.tensors.end()) << name;
        return *found;
    };
    const Tensor weight = named("layers.1.self_attn.qkv_proj.weight"), bias = named("layers.1.self_attn.qkv_proj.bias");
    EXPECT_EQ(weight.shape, (std::vector<std::int64_t>{(4 + 2 * 2) * 128, 48}));
    EXPECT_EQ(bias.shape, std::vector<std::int64_t>{(4 + 2 * 2) * 128});
    ASSERT_EQ(weight.parts.size(), 3u);
    EXPECT_EQ(weight.parts[1].name, "layers.1.self_attn.k_proj.weight");
    EXPECT_EQ(weight.parts[1].extent, 2 * 128);
    EXPECT_EQ(bias.parts.at(2).name, "layers.1.self_attn.v_proj.bias");
    EXPECT_EQ(named("layers.0.mlp.gate_up_proj.weight").parts.at(1).name, "layers.0.mlp.up_proj.weight");
    EXPECT_TRUE(named("layers.0.self_attn.o_proj.weight").parts.empty());
    EXPECT_EQ(named("layers.0.self_attn.o_proj.weight").shape, (std::vector<std::int64_t>{48, 4 * 128}));
    EXPECT_EQ(named("layers.0.self_attn.k_norm.weight").shape, std::vector<std::int64_t>{128});
    EXPECT_EQ(named("lm_head.weight").shape, (std::vector<std::int64_t>{101, 48}));
}

TEST(Llama, DecodesOverCachesOfItsKvHeadsWithinItsWindow) {
    LlamaConfig config = parsed(R"("model_type": "mistral", "num_key_value_heads": 2, "sliding_window": 9)");
    const Model decode = make_llama(config, 3, 1, 20);
    EXPECT_EQ(decode.ops.front().op, Op(TokenEmbedding{3, 48, 101}));
    int attentions = 0;
    for (const OpNode& node : decode.ops)
        if (const auto* attention = node.op.get_if<CachedAttention>()) {
            ++attentions;
            EXPECT_EQ(attention->kv_heads, 2);
            EXPECT_EQ(attention->window, 9);
            EXPECT_EQ(attention->past, 20);
            EXPECT_EQ(decode.tensors[node.inputs.at(1)].shape, (std::vector<std::int64_t>{3, 2, 21, 12}));
        }
    EXPECT_EQ(attentions, 2);
    EXPECT_EQ(decode.given().size(), 2u + 2 * 2) << "tokens, positions, and two caches a layer";
    EXPECT_FALSE(decode.loss) << "attention over a cache has no backward";
    EXPECT_THROW(make_llama(config, 1, 1, 64), UsageError);
    EXPECT_NO_THROW(make_llama(config, 1, 1, 63));
}

}  // namespace
}  // namespace kbench
