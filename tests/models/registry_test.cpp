// The named models: their sizes and what a wrong name is answered.
#include "models/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kbench/error.h"

namespace kbench {
namespace {

std::int64_t parameters(std::string_view name) {
    return make_gpt2(find_model(name), 1, 1, AttentionKind::fused).parameter_count();
}

TEST(Registry, PublishedModelsHaveTheirCheckpointsParameterCounts) {
    EXPECT_EQ(parameters("gpt2"), 124'439'808);
    EXPECT_EQ(parameters("gpt2-medium"), 354'823'168);
    EXPECT_EQ(parameters("gpt2-large"), 774'030'080);
    EXPECT_EQ(parameters("gpt2-xl"), 1'557'611'200);
}

TEST(Registry, ListsModelsFromSmallestToLargest) {
    std::int64_t previous = 0;
    for (const Gpt2Config& config : builtin_models()) {
        const std::int64_t count = parameters(config.name);
        EXPECT_GT(count, previous) << config.name;
        previous = count;
    }
}

TEST(Registry, CodeparrotDiffersFromLargeInVocabularyAndAttentionOnly) {
    const Gpt2Config& large = find_model("gpt2-large");
    const Gpt2Config& codeparrot = find_model("gpt2-large-codeparrot");
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
        EXPECT_STREQ(error.what(),
                     "unknown model 'gpt2-lrage'; did you mean 'gpt2-large'? "
                     "(gpt2, gpt2-medium, gpt2-large-codeparrot, gpt2-large, gpt2-xl)");
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
            EXPECT_THAT(error.what(), testing::HasSubstr("did you mean '" + std::string(meant) + "'?")) << slip;
        }
    }
}

TEST(Registry, NamesAreMatchedWhole) {
    for (const char* wrong : {"", "gpt", "gpt2-", "GPT2", "gpt2-large "})
        EXPECT_THROW(find_model(wrong), UsageError) << '\'' << wrong << '\'';
}

}  // namespace
}  // namespace kbench
