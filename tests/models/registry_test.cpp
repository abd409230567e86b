// The named models: their sizes and what a wrong name is answered.
#include "models/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kbench/error.h"
#include "models/gpt2.h"

namespace kbench {
namespace {

std::int64_t parameters(std::string_view name) {
    return find_model(name).build({.counts = {{"seq", 1}}}).parameter_count();
}

TEST(Registry, PublishedModelsHaveTheirCheckpointsParameterCounts) {
    EXPECT_EQ(parameters("gpt2"), 124'439'808);
    EXPECT_EQ(parameters("gpt2-medium"), 354'823'168);
    EXPECT_EQ(parameters("gpt2-large"), 774'030'080);
    EXPECT_EQ(parameters("gpt2-xl"), 1'557'611'200);
}

TEST(Registry, ListsTheModelsOfAFamilyFromSmallestToLargest) {
    for (const ModelFamily& family : model_families()) {
        std::int64_t previous = 0;
        for (const ModelSpec& model : family.built_in()) {
            const std::int64_t count = model.build({}).parameter_count();
            EXPECT_GT(count, previous) << model.name;
            previous = count;
        }
    }
}

TEST(Registry, CodeparrotDiffersFromLargeInVocabularyAndAttentionOnly) {
    const Gpt2Config& large = gpt2_config("gpt2-large");
    const Gpt2Config& codeparrot = gpt2_config("gpt2-large-codeparrot");
    EXPECT_EQ(codeparrot.n_embd, large.n_embd);
    EXPECT_EQ(codeparrot.n_layer, large.n_layer);
    EXPECT_EQ(codeparrot.n_head, large.n_head);
    EXPECT_EQ(codeparrot.vocab_size, 32768);
    EXPECT_TRUE(codeparrot.scale_attn_by_inverse_layer_idx);
    EXPECT_TRUE(codeparrot.reorder_and_upcast_attn);
    EXPECT_FALSE(large.scale_attn_by_inverse_layer_idx);
    EXPECT_FALSE(large.reorder_and_upcast_attn);
}

TEST(Registry, UnknownNameIsAnsweredWithTheNearestAndAllOthers) {
    try {
        find_model("gpt2-lrage");
        FAIL() << "no error";
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(),
                    testing::StartsWith("unknown model 'gpt2-lrage'; did you mean gpt2-large? One of gpt2, "));
        for (const ModelSpec& model : builtin_models())
            EXPECT_THAT(error.what(), testing::ContainsRegex(" " + model.name + "(,|$)"));
        EXPECT_EQ(error.code(), ExitCode::usage);
    }
}

TEST(Registry, NearestNameCountsLettersAddedLostAndReplaced) {
    const std::pair<const char*, const char*> slips[] = {
        {"gp2", "gpt2"},          {"gpt2-mediumm", "gpt2-medium"},
        {"gpt2xl", "gpt2-xl"},    {"gpt2-lxrge", "gpt2-large"},
        {"gpt2-xxl", "gpt2-xl"},  {"large-codeparrot", "gpt2-large-codeparrot"},
        {"medium", "gpt2-medium"}};
    for (const auto& [slip, meant] : slips) {
        try {
            find_model(slip);
            ADD_FAILURE() << slip << " was found";
        } catch (const UsageError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("did you mean " + std::string(meant))) << slip;
        }
    }
}

TEST(Registry, NamesAreMatchedWhole) {
    for (const char* wrong : {"", "gpt", "gpt2-", "GPT2", "gpt2-large "})
        EXPECT_THROW(find_model(wrong), UsageError) << '\'' << wrong << '\'';
}

std::string refusal(const std::function<void()>& call) {
    try {
        call();
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Registry, EveryModelIsOfAFamilyThatBuildsIt) {
    std::size_t models = 0;
    for (const ModelFamily& family : model_families()) {
        EXPECT_FALSE(family.what.empty()) << family.name;
        models += family.built_in().size();
    }
    EXPECT_EQ(builtin_models().size(), models);
    for (const ModelSpec& spec : builtin_models()) {
        EXPECT_EQ(&find_model(spec.name), &spec);
        EXPECT_THAT(spec.description, testing::StartsWith(spec.name + ": "));
    }
}

TEST(Registry, AxesThatAreLeftOutHaveTheirUsualValue) {
    const ModelSpec& large = find_model("gpt2-large");
    const Model usual = large.build({});
    EXPECT_EQ(usual.tensors[usual.inputs.at(0)].shape, (std::vector<std::int64_t>{1, 1024}));
    EXPECT_EQ(usual.ops.size(), make_gpt2(gpt2_config("gpt2-large"), 1, 1024, AttentionKind::fused).ops.size());
    const Model asked = large.build({.counts = {{"batch", 3}, {"seq", 5}}, .words = {{"attention", "unfused"}}});
    EXPECT_EQ(asked.tensors[asked.inputs.at(0)].shape, (std::vector<std::int64_t>{3, 5}));
    EXPECT_GT(asked.ops.size(), usual.ops.size()) << "unfused attention is four ops";
}

TEST(Registry, WhatAModelHasNotIsRefusedByName) {
    const auto of = [](ModelPoint point) { return refusal([&] { find_model("gpt2-large").build(point); }); };
    EXPECT_EQ(of({.counts = {{"seq", 2048}}}), "seq 2048 is over gpt2-large's n_ctx 1024");
    EXPECT_EQ(of({.counts = {{"seq", 0}}}), "seq 0 must be at least 1");
    EXPECT_EQ(of({.counts = {{"batch", -3}}}), "batch -3 must be at least 1");
    EXPECT_EQ(of({.counts = {{"resolution", 224}}}),
              "gpt2-large has no resolution; it has batch, seq, attention, phase, new, past");
    EXPECT_EQ(of({.words = {{"pooling", "max"}}}),
              "gpt2-large has no pooling; it has batch, seq, attention, phase, new, past");
    EXPECT_EQ(of({.words = {{"attention", "flash"}}}),
              "attention 'flash' of gpt2-large: must be one of fused, unfused");
}

TEST(Registry, AConfigurationsTypeSaysOfWhichFamilyItIs) {
    const std::string keys = R"("n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 10, "n_positions": 16)";
    for (const std::string& text : {"{" + keys + "}", R"({"model_type": "gpt2", )" + keys + "}"}) {
        const ModelSpec read = read_model(text, "models/mine.json");
        EXPECT_EQ(read.name, "mine");
        EXPECT_EQ(read.axis("seq")->most, 16);
        EXPECT_EQ(read.axis("resolution"), nullptr);
    }
    EXPECT_THAT(refusal([&] { read_model(R"({"model_type": "mamba", )" + keys + "}", "models/mine.json"); }),
                testing::StartsWith("models/mine.json: model_type 'mamba' is not supported; must be one of gpt2"));
}

TEST(Registry, DescriptionsTellConfigurationsApart) {
    Gpt2Config config{.name = "mine", .n_embd = 8, .n_layer = 1, .n_head = 2};
    const std::string before = gpt2_spec(config).description;
    EXPECT_EQ(gpt2_spec(config).description, before);
    config.scale_attn_weights = false;
    EXPECT_NE(gpt2_spec(config).description, before);
}

}  // namespace
}  // namespace kbench
