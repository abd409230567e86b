// GPT-2's structure: names, data flow, initialisation and the reading of config.json.
#include "models/gpt2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "kbench/error.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Tensor& find(const Model& model, const std::string& name) {
    for (const Tensor& tensor : model.tensors)
        if (tensor.name == name) return tensor;
    throw std::out_of_range("no tensor " + name);
}

std::vector<std::string> ops_of_first_block(const Model& model) {
    std::vector<std::string> ops;
    for (const OpNode& node : model.ops)
        if (node.layer == "h.0" || node.layer.starts_with("h.0."))
            ops.push_back(node.layer + " " + std::string(name(node.op)));
    return ops;
}

Gpt2Config tiny() { return {.name = "tiny", .n_embd = 12, .n_layer = 2, .n_head = 3, .n_ctx = 8, .vocab_size = 11}; }

TEST(Gpt2, BlockRunsItsOpsInOrderUnderTheCheckpointsLayerNames) {
    EXPECT_THAT(ops_of_first_block(make_gpt2(tiny(), 1, 4, AttentionKind::fused)),
                ElementsAre("h.0.ln_1 layernorm", "h.0.attn.c_attn gemm", "h.0.attn.c_attn bias", "h.0.attn attention",
                            "h.0.attn.c_proj gemm", "h.0.attn.c_proj bias", "h.0 residual", "h.0.ln_2 layernorm",
                            "h.0.mlp.c_fc gemm", "h.0.mlp.c_fc bias", "h.0.mlp.act gelu", "h.0.mlp.c_proj gemm",
                            "h.0.mlp.c_proj bias", "h.0 residual"));
}

TEST(Gpt2, UnfusedAttentionIsFourOps) {
    EXPECT_THAT(ops_of_first_block(make_gpt2(tiny(), 1, 4, AttentionKind::unfused)),
                testing::IsSupersetOf({"h.0.attn attention_scores", "h.0.attn scale_mask", "h.0.attn softmax",
                                       "h.0.attn attention_context"}));
}

TEST(Gpt2, ADecodeStepIsTheForwardOfOneTokenOverACache) {
    const Model forward = make_gpt2(tiny(), 2, 1, AttentionKind::fused), decode = make_gpt2_decode(tiny(), 2, 5);
    ASSERT_EQ(decode.ops.size(), forward.ops.size());
    for (std::size_t i = 0; i < decode.ops.size(); ++i) {
        EXPECT_EQ(decode.ops[i].layer, forward.ops[i].layer);
        if (decode.ops[i].op.is<EmbeddingAt>() || decode.ops[i].op.is<CachedAttention>()) continue;
        EXPECT_EQ(decode.ops[i].op, forward.ops[i].op) << decode.ops[i].layer;
    }
    EXPECT_EQ(decode.ops.front().op, Op(EmbeddingAt{2, 1, 12, 11, 8}));
    EXPECT_EQ(decode.parameter_count(), forward.parameter_count());
    EXPECT_FALSE(decode.loss);
    const Tensor& cache = find(decode, "h.1.attn.value_cache");
    EXPECT_THAT(cache.shape, ElementsAre(2, 3, 6, 4)) << "batch, heads, past and the new token, head size";
    EXPECT_EQ(cache.role, Role::cache);
    EXPECT_TRUE(cache.resident);
    const Tensor& positions = find(decode, "positions");
    EXPECT_THAT(positions.shape, ElementsAre(2, 1));
    EXPECT_EQ(positions.contents.numbers[0], 5);
    EXPECT_THAT(decode.inputs, ElementsAre(0, &positions - decode.tensors.data()));
    EXPECT_THROW(make_gpt2_decode(tiny(), 2, 8), UsageError) << "n_ctx tokens came before";
    EXPECT_NO_THROW(make_gpt2_decode(tiny(), 2, 7));
}

TEST(Gpt2, APrefillIsTheForwardThatFillsACacheAndHasOneTokensLogits) {
    const Model forward = make_gpt2(tiny(), 2, 5, AttentionKind::fused), prefill = make_gpt2_prefill(tiny(), 2, 5, 3);
    std::vector<Op> ops;
    for (const OpNode& node : prefill.ops)
        if (!node.op.is<FillCache>() && !node.op.is<LastToken>()) ops.push_back(node.op);
    ASSERT_EQ(ops.size(), forward.ops.size());
    for (std::size_t i = 0; i + 1 < ops.size(); ++i) EXPECT_EQ(ops[i], forward.ops[i].op) << forward.ops[i].layer;
    EXPECT_EQ(ops.back(), Op(Gemm{2, 11, 12, true}));
    EXPECT_THAT(ops_of_first_block(prefill), testing::Contains("h.0.attn fill_cache"));
    EXPECT_EQ(prefill.ops[prefill.ops.size() - 2].op, Op(LastToken{2, 5, 12}));
    EXPECT_THAT(find(prefill, "logits").shape, ElementsAre(2, 1, 11));
    EXPECT_EQ(prefill.parameter_count(), forward.parameter_count());
    EXPECT_FALSE(prefill.loss);
    const Tensor& cache = find(prefill, "h.1.attn.key_cache");
    EXPECT_THAT(cache.shape, ElementsAre(2, 3, 8, 4)) << "batch, heads, prompt and new tokens, head size";
    const Model last = make_gpt2_decode(tiny(), 2, 7);
    EXPECT_EQ(find(last, cache.name).shape, cache.shape) << "what the last new token reads";
    EXPECT_TRUE(cache.resident);
    EXPECT_THROW(make_gpt2_prefill(tiny(), 2, 5, 4), UsageError) << "n_ctx is 8";
    EXPECT_NO_THROW(make_gpt2_prefill(tiny(), 2, 8, 0));
}

TEST(Gpt2, ModelBeginsWithTheEmbeddingAndEndsWithTheHead) {
    const Model model = make_gpt2(tiny(), 2, 4, AttentionKind::fused);
    EXPECT_EQ(model.ops.size(), 1u + 2 * 14 + 2);
    EXPECT_EQ(model.ops.front().layer, "wte+wpe");
    EXPECT_EQ(model.ops.front().op, Op(Embedding{8, 4, 12, 11, 8}));
    EXPECT_EQ(model.ops[model.ops.size() - 2].layer, "ln_f");
    EXPECT_EQ(model.ops.back().layer, "lm_head");
    EXPECT_EQ(model.ops.back().op, Op(Gemm{8, 11, 12, true}));
    EXPECT_EQ(model.outputs, model.ops.back().outputs);
    ASSERT_EQ(model.inputs.size(), 1u);
    const Tensor &tokens = model.tensors[model.inputs[0]], &logits = model.tensors[model.outputs[0]];
    EXPECT_EQ(tokens.name, "tokens");
    EXPECT_EQ(tokens.role, Role::tokens);
    EXPECT_EQ(tokens.element, ElementType::int32);
    EXPECT_EQ(tokens.contents, Contents::below(11)) << "the vocabulary";
    EXPECT_THAT(tokens.shape, ElementsAre(2, 4));
    EXPECT_EQ(logits.name, "logits");
    EXPECT_EQ(logits.role, Role::logits);
    EXPECT_THAT(logits.shape, ElementsAre(2, 4, 11));
}

TEST(Gpt2, WeightsHaveTheCheckpointsNamesAndShapes) {
    const Model model = make_gpt2(tiny(), 1, 4, AttentionKind::fused);
    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (const Tensor& tensor : model.tensors)
        if (tensor.role == Role::weights && !tensor.name.starts_with("h.1.")) shapes[tensor.name] = tensor.shape;
    const decltype(shapes) checkpoint{
        {"wte.weight", {11, 12}},
        {"wpe.weight", {8, 12}},
        {"h.0.ln_1.weight", {12}},
        {"h.0.ln_1.bias", {12}},
        {"h.0.attn.c_attn.weight", {12, 36}},
        {"h.0.attn.c_attn.bias", {36}},
        {"h.0.attn.c_proj.weight", {12, 12}},
        {"h.0.attn.c_proj.bias", {12}},
        {"h.0.ln_2.weight", {12}},
        {"h.0.ln_2.bias", {12}},
        {"h.0.mlp.c_fc.weight", {12, 48}},
        {"h.0.mlp.c_fc.bias", {48}},
        {"h.0.mlp.c_proj.weight", {48, 12}},
        {"h.0.mlp.c_proj.bias", {12}},
        {"ln_f.weight", {12}},
        {"ln_f.bias", {12}},
    };
    EXPECT_EQ(shapes, checkpoint);
}

TEST(Gpt2, UntiedHeadHasAWeightOfItsOwn) {
    Gpt2Config config = tiny();
    const std::int64_t tied = make_gpt2(config, 1, 1, AttentionKind::fused).parameter_count();
    config.tie_word_embeddings = false;
    const Model model = make_gpt2(config, 1, 1, AttentionKind::fused);
    EXPECT_EQ(model.parameter_count(), tied + 11 * 12);
    EXPECT_EQ(model.tensors[model.ops.back().inputs[1]].name, "lm_head.weight");
    EXPECT_EQ(find(model, "lm_head.weight").rows(), 11);
}

class Gpt2DataFlow : public testing::TestWithParam<AttentionKind> {};
INSTANTIATE_TEST_SUITE_P(Attention, Gpt2DataFlow, testing::Values(AttentionKind::fused, AttentionKind::unfused),
                         [](const auto& test) { return test.param == AttentionKind::fused ? "Fused" : "Unfused"; });

TEST_P(Gpt2DataFlow, EveryTensorIsWrittenOnceBeforeItIsReadAndHasANameOfItsOwn) {
    const Model model = make_gpt2(tiny(), 2, 4, GetParam());
    std::set<TensorId> available;
    std::set<std::string> names;
    for (TensorId id = 0; id < model.tensors.size(); ++id) {
        const Role role = model.tensors[id].role;
        if (role == Role::weights || role == Role::tokens) available.insert(id);
        EXPECT_TRUE(names.insert(model.tensors[id].name).second) << model.tensors[id].name;
    }
    std::set<TensorId> read;
    for (const OpNode& node : model.ops) {
        for (TensorId id : node.inputs) {
            EXPECT_TRUE(available.contains(id)) << node.layer << " reads " << model.tensors[id].name;
            read.insert(id);
        }
        for (TensorId id : node.outputs)
            EXPECT_TRUE(available.insert(id).second) << node.layer << " writes " << model.tensors[id].name << " again";
    }
    EXPECT_EQ(available.size(), model.tensors.size());
    read.insert(model.outputs.begin(), model.outputs.end());
    EXPECT_EQ(read.size(), model.tensors.size()) << "a tensor is never read";
}

TEST_P(Gpt2DataFlow, ResidualStreamPassesEveryBlock) {
    const Model model = make_gpt2(tiny(), 1, 4, GetParam());
    TensorId stream = model.ops.front().outputs.front();
    int additions = 0;
    for (const OpNode& node : model.ops)
        if (node.op.is<ResidualAdd>()) {
            EXPECT_EQ(node.inputs[1], stream) << node.layer;
            stream = node.outputs.front();
            ++additions;
        }
    EXPECT_EQ(additions, 4);
    EXPECT_EQ(model.ops[model.ops.size() - 2].inputs[0], stream) << "ln_f reads the last sum";
}

TEST_P(Gpt2DataFlow, ShapesOfOpsMatchTheirTensors) {
    const Model model = make_gpt2(tiny(), 2, 4, GetParam());
    for (const OpNode& node : model.ops)
        if (const auto* gemm = node.op.get_if<Gemm>()) {
            const Tensor& x = model.tensors[node.inputs[0]];
            const Tensor& w = model.tensors[node.inputs[1]];
            const Tensor& y = model.tensors[node.outputs[0]];
            EXPECT_EQ(std::pair(x.rows(), x.columns()), std::pair(gemm->m, gemm->k)) << node.layer;
            EXPECT_EQ(std::pair(y.rows(), y.columns()), std::pair(gemm->m, gemm->n)) << node.layer;
            EXPECT_EQ(std::pair(w.rows(), w.columns()),
                      gemm->weight_transposed ? std::pair(gemm->n, gemm->k) : std::pair(gemm->k, gemm->n))
                << node.layer;
        } else if (const auto* softmax = node.op.get_if<Softmax>()) {
            EXPECT_EQ(softmax->rows, 2 * 3 * 4);
            EXPECT_EQ(softmax->width, 4);
            EXPECT_EQ(model.tensors[node.inputs[0]].rows(), softmax->rows);
        }
}

std::vector<double> attention_scales(const Gpt2Config& config, AttentionKind kind) {
    std::vector<double> scales;
    for (const OpNode& node : make_gpt2(config, 1, 2, kind).ops) {
        if (const auto* fused = node.op.get_if<Attention>()) scales.push_back(fused->scale);
        if (const auto* unfused = node.op.get_if<ScaleMask>()) scales.push_back(unfused->scale);
    }
    return scales;
}

TEST_P(Gpt2DataFlow, AttentionIsScaledAsTheConfigurationSays) {
    Gpt2Config config = tiny();  // head size 4
    EXPECT_THAT(attention_scales(config, GetParam()), ElementsAre(0.5, 0.5));
    config.scale_attn_by_inverse_layer_idx = true;
    EXPECT_THAT(attention_scales(config, GetParam()), ElementsAre(0.5, 0.25));
    config.scale_attn_weights = false;
    EXPECT_THAT(attention_scales(config, GetParam()), ElementsAre(1.0, 0.5));
}

TEST(Gpt2, UpcastKeepsScoresInFp32AndProbabilitiesInTheStorageType) {
    Gpt2Config config = tiny();
    for (bool upcast : {false, true}) {
        config.reorder_and_upcast_attn = upcast;
        const ElementType stored = upcast ? ElementType::at_least_fp32 : ElementType::storage;
        const Model model = make_gpt2(config, 1, 4, AttentionKind::unfused);
        EXPECT_EQ(find(model, "h.0.attn.scores").element, stored);
        EXPECT_EQ(find(model, "h.0.attn.masked_scores").element, stored);
        EXPECT_EQ(find(model, "h.0.attn.probabilities").element, ElementType::storage);
        EXPECT_EQ(find(model, "h.0.attn.scores").role, Role::scores);
    }
}

TEST(Gpt2, WeightsAreInitialisedAsPublished) {
    Gpt2Config config = tiny();
    config.initializer_range = 0.1;
    for (const Tensor& tensor : make_gpt2(config, 1, 1, AttentionKind::fused).tensors) {
        if (tensor.role != Role::weights) continue;
        const bool norm = tensor.name.find("ln_") != std::string::npos;
        if (tensor.name.ends_with(".bias")) {
            EXPECT_EQ(tensor.contents.kind, Contents::Kind::zeros) << tensor.name;
        } else if (norm) {
            EXPECT_EQ(tensor.contents.kind, Contents::Kind::ones) << tensor.name;
        } else {
            EXPECT_EQ(tensor.contents.kind, Contents::Kind::normal) << tensor.name;
            const bool residual = tensor.name.ends_with("c_proj.weight");
            EXPECT_DOUBLE_EQ(tensor.contents.deviation, residual ? 0.1 / 2.0 : 0.1) << tensor.name;
        }
    }
}

TEST(Gpt2, InnerWidthIsFourTimesTheModelsUnlessGiven) {
    Gpt2Config config = tiny();
    EXPECT_EQ(find(make_gpt2(config, 1, 1, AttentionKind::fused), "h.0.mlp.c_fc.weight").columns(), 48);
    config.n_inner = 20;
    EXPECT_EQ(find(make_gpt2(config, 1, 1, AttentionKind::fused), "h.0.mlp.c_fc.weight").columns(), 20);
}

std::string message(auto call) {
    try {
        call();
    } catch (const UsageError& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        return error.what();
    }
    return "no error";
}

TEST(Gpt2, RefusesShapesTheModelDoesNotHave) {
    const auto make = [](std::int64_t batch, std::int64_t seq) {
        return message([&] { make_gpt2(gpt2_config("gpt2-large"), batch, seq, AttentionKind::fused); });
    };
    EXPECT_EQ(make(1, 2048), "seq 2048 is over gpt2-large's n_ctx 1024");
    EXPECT_EQ(make(1, 1025), "seq 1025 is over gpt2-large's n_ctx 1024");
    EXPECT_EQ(make(1, 0), "seq 0 must be at least 1");
    EXPECT_EQ(make(0, 1024), "batch 0 must be at least 1");
    EXPECT_EQ(make(-3, 1024), "batch -3 must be at least 1");
    EXPECT_EQ(make(1, 1024), "no error");
}

Gpt2Config parse(const std::string& text) { return parse_gpt2_config(text, "models/mine.json"); }
std::string parse_error(const std::string& text) {
    return message([&] { parse(text); });
}

TEST(Gpt2ConfigFile, PublishedFileGivesTheBuiltInModel) {
    // The keys of gpt2-large's config.json that describe the model, and some that do not change it.
    const Gpt2Config read = parse(R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
        "attn_pdrop": 0.1, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
        "n_embd": 1280, "n_head": 20, "n_inner": null, "n_layer": 36, "n_positions": 1024, "vocab_size": 50257})");
    const Gpt2Config& known = gpt2_config("gpt2-large");
    EXPECT_EQ(read.name, "mine");
    EXPECT_EQ(read.n_embd, known.n_embd);
    EXPECT_EQ(read.n_layer, known.n_layer);
    EXPECT_EQ(read.n_head, known.n_head);
    EXPECT_EQ(read.n_ctx, known.n_ctx);
    EXPECT_EQ(read.vocab_size, known.vocab_size);
    EXPECT_EQ(read.n_inner, 0);
    EXPECT_EQ(read.layer_norm_epsilon, 1e-5);
    EXPECT_TRUE(read.tie_word_embeddings);
}

TEST(Gpt2ConfigFile, OptionalKeysAreRead) {
    const Gpt2Config read = parse(R"({"_name_or_path": "me/mine", "n_embd": 8, "n_layer": 1, "n_head": 2,
        "vocab_size": 10, "n_positions": 16, "n_inner": 24, "layer_norm_epsilon": 1e-6, "scale_attn_weights": false,
        "scale_attn_by_inverse_layer_idx": true, "reorder_and_upcast_attn": true, "initializer_range": 0.5,
        "tie_word_embeddings": false, "activation_function": "gelu_pytorch_tanh"})");
    EXPECT_EQ(read.name, "me/mine");
    EXPECT_EQ(read.n_inner, 24);
    EXPECT_EQ(read.layer_norm_epsilon, 1e-6);
    EXPECT_FALSE(read.scale_attn_weights);
    EXPECT_TRUE(read.scale_attn_by_inverse_layer_idx);
    EXPECT_TRUE(read.reorder_and_upcast_attn);
    EXPECT_EQ(read.initializer_range, 0.5);
    EXPECT_FALSE(read.tie_word_embeddings);
}

TEST(Gpt2ConfigFile, AnActivationIsTheOneThatTransformersCallsSo) {
    const auto act = [](const std::string& name) {
        const Gpt2Config read = parse(R"({"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 10, "n_positions": 16,
            "activation_function": ")" +
                                      name + "\"}");
        const Model model = make_gpt2(read, 1, 4, AttentionKind::fused);
        for (const OpNode& node : model.ops)
            if (node.layer == "h.0.mlp.act") return std::string(kbench::name(node.op)) + " " + node.op.text();
        return std::string();
    };
    EXPECT_EQ(act("gelu_new"), "gelu r4w32");
    EXPECT_EQ(act("gelu_fast"), "gelu_fast r4w32");
    EXPECT_EQ(act("gelu"), "gelu_erf r4w32");
    EXPECT_EQ(act("gelu_python"), "gelu_erf r4w32");
    EXPECT_EQ(act("quick_gelu"), "quick_gelu r4w32");
    EXPECT_EQ(act("relu"), "relu r4w32");
    EXPECT_EQ(act("silu"), "silu r4w32");
    EXPECT_EQ(act("swish"), "silu r4w32");
    EXPECT_EQ(act("tanh"), "tanh r4w32");
}

TEST(Gpt2ConfigFile, ADescriptionNamesAnActivationButTheUsualOne) {
    Gpt2Config config = tiny();
    EXPECT_THAT(gpt2_spec(config).description, Not(HasSubstr("activation"))) << "older results have it not";
    config.activation = Activation::relu;
    EXPECT_THAT(gpt2_spec(config).description, HasSubstr(", activation relu"));
}

TEST(Gpt2ConfigFile, OlderFilesGiveTheLongestSequenceAsNCtx) {
    EXPECT_EQ(parse(R"({"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 10, "n_ctx": 32})").n_ctx, 32);
}

TEST(Gpt2ConfigFile, MissingKeyIsNamedWithAllThatAreNeeded) {
    EXPECT_EQ(
        parse_error(R"({"n_embd": 8, "n_layer": 1, "vocab_size": 10, "n_positions": 16})"),
        "models/mine.json: key 'n_head' is missing; a GPT-2 config.json needs n_embd, n_layer, n_head, vocab_size and n_positions");
    EXPECT_THAT(parse_error(R"({"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 10})"),
                HasSubstr("key 'n_positions' is missing"));
}

TEST(Gpt2ConfigFile, WrongValuesAreShownWithWhatWouldBeRight) {
    const auto with = [](const std::string& n_head, const std::string& more = "") {
        return parse_error(R"({"n_embd": 8, "n_layer": 1, "vocab_size": 10, "n_positions": 16, "n_head": )" + n_head +
                           more + "}");
    };
    const std::string range = "; it must be an integer from 1 to 2147483647";
    EXPECT_EQ(with("\"2\""), "models/mine.json: key 'n_head' is \"2\"" + range);
    EXPECT_EQ(with("-2"), "models/mine.json: key 'n_head' is -2" + range);
    EXPECT_EQ(with("0"), "models/mine.json: key 'n_head' is 0" + range);
    EXPECT_EQ(with("2.0"), "models/mine.json: key 'n_head' is 2.0" + range);
    EXPECT_THAT(with("18446744073709551615"), HasSubstr(range));
    EXPECT_EQ(with("3"),
              "models/mine.json: n_embd 8 is not a multiple of n_head 3; a head takes n_embd / n_head columns");
    EXPECT_EQ(with("2", R"(, "scale_attn_weights": 1)"),
              "models/mine.json: key 'scale_attn_weights' is 1; it must be true or false");
    EXPECT_EQ(with("2", R"(, "layer_norm_epsilon": 0)"),
              "models/mine.json: key 'layer_norm_epsilon' is 0; it must be a number above 0");
    EXPECT_EQ(
        with("2", R"(, "activation_function": "mish")"),
        "models/mine.json: activation_function 'mish' is not supported; gelu_new, gelu_pytorch_tanh, gelu_python_tanh, gelu_accurate, gelu_fast, gelu, gelu_python, quick_gelu, relu, silu, swish, tanh are");
    EXPECT_EQ(with("2", R"(, "model_type": "llama")"),
              "models/mine.json: model_type 'llama' is not supported; it must be 'gpt2'");
    EXPECT_EQ(with("2", R"(, "scale_attn_weights": null)"),
              "models/mine.json: key 'scale_attn_weights' is null; it must be true or false");
    EXPECT_EQ(with("2"), "no error");
}

TEST(Gpt2ConfigFile, WhatIsNoJsonObjectIsRefusedInOneLine) {
    for (const char* text : {"", "{", "n_embd = 8", "[1,\n2]", "\"gpt2\"", "null", "{\"n_embd\": \"\n\"}", "\xff\xfe"})
        EXPECT_THAT(parse_error(text), AllOf(testing::StartsWith("models/mine.json: "), Not(HasSubstr("\n")))) << text;
}

}  // namespace
}  // namespace kbench
