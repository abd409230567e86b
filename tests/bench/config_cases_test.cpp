// Configurations as people have them, which once measured another model than they describe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

class ConfigCases : public Program {
  protected:
    static std::string of_case(const std::string& name) {
        return std::string(KBENCH_SOURCE_DIR "/tests/bench/cases/") + name + "/config.json";
    }
    std::string arguments(const std::string& file, const std::string& more) {
        return "--config " + file + " " + more +
               " --backend cpu --latency-only --quick --time-budget 0.1 --ceilings none --out " + out();
    }
    std::string out() { return (directory_ / "run").string(); }
    Json result() { return Json::parse(read_text(directory_ / "run/result.json")); }
};

TEST_F(ConfigCases, ARecurrentLayerOfOneDirectionIsRefused) {
    expect_refusal(arguments(of_case("ds2-unidirectional"), "--frames 20"), "key 'bidirectional' is false");
}

TEST_F(ConfigCases, PrunedHeadsAreRefused) {
    expect_refusal(arguments(of_case("gpt2-pruned-heads"), "--seq 8"), "key 'pruned_heads' is {\"0\":[1,2]}");
}

TEST_F(ConfigCases, ANestedConfigurationOfSpeechIsTheModelThatIsMeasured) {
    const Outcome outcome = kbench(arguments(of_case("ds2-nested-config"), "--frames 20 --verbose"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    // The convolutions, seven layers of GRU whose first reads 32 channels of 21 rows, their norms, and 29 labels.
    const double convolutions = 32 * 41 * 11 + 32 + 32 * 32 * 21 * 11 + 32 + 2 * 4 * 32;
    const double recurrent = 2 * (7 * (3 * 64 * 64 + 2 * 3 * 64) + 3 * 64 * (32 * 21 + 6 * 64));
    EXPECT_EQ(result()["points"][0]["parameters"], convolutions + recurrent + 7 * 4 * 64 + 29 * 64);
    EXPECT_THAT(outcome.out, HasSubstr("hidden_size 64 (from model.hidden_size)"));
    EXPECT_THAT(outcome.out, HasSubstr("by default:"));
}

TEST_F(ConfigCases, TransformersCommonNamesAreReadAndStored) {
    const Outcome outcome = kbench(arguments(of_case("hf-common-names"), "--seq 8"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json json = result(), &stored = json["configuration"];
    const auto has = [&](const char* key, const char* value, const char* from) {
        const Json wanted{{"key", key}, {"value", value}, {"from", from}};
        return std::ranges::find(stored, wanted) != stored.end();
    };
    EXPECT_TRUE(has("n_embd", "32", "hidden_size")) << stored;
    EXPECT_TRUE(has("n_layer", "2", "num_hidden_layers"));
    EXPECT_TRUE(has("n_positions", "16", "max_position_embeddings"));
    EXPECT_TRUE(has("tie_word_embeddings", "true", ""));
    EXPECT_THAT(kbench("report " + out() + " --format text --verbose").out,
                HasSubstr("n_head 4 (from num_attention_heads)"));
}

TEST_F(ConfigCases, AnUnknownKeyIsToldOnceByEveryCommand) {
    const std::string file = config(R"({"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 301, "n_positions": 32,
                                        "favourite_colour": "blue"})");
    const Outcome outcome = kbench(arguments(file, "--seq 8 --batch 1,2"));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    int told = 0;
    const Json json = result();
    EXPECT_FALSE(json["configuration"].empty());
    for (const Json& warning : json["warnings"])
        told += warning.get<std::string>().find("favourite_colour") != std::string::npos;
    EXPECT_EQ(told, 1);
    EXPECT_THAT(outcome.out, HasSubstr("ignored, since kbench does not know them: favourite_colour"));
    const Outcome claim = kbench("claim --config " + file + " --machine h100-sxm --latency 1ms");
    EXPECT_THAT(claim.err, HasSubstr("favourite_colour"));
    const Outcome train = kbench("train --config " + file + " --backend cpu --seq 8 --batch 1 --steps 1");
    EXPECT_EQ(train.exit_code, 0) << train.err;
    EXPECT_THAT(train.err, HasSubstr("favourite_colour"));
    EXPECT_THAT(train.out, HasSubstr("n_embd 64"));
}

TEST_F(ConfigCases, EveryCommandRefusesTheSameConfigurations) {
    const std::string file = of_case("gpt2-pruned-heads");
    for (const std::string& command :
         {"train --backend cpu --steps 1 --config " + file, "study --backend cpu --config " + file,
          "claim --machine h100-sxm --latency 1ms --config " + file})
        expect_refusal(command, "key 'pruned_heads'");
}

TEST_F(ConfigCases, AConfigurationFromAPipeIsReadAndADirectoryIsSentToItsFile) {
    const std::string file = tiny_config();
    const Outcome piped = shell("sh -c 'cat " + file + " | KBENCH_CACHE_DIR=" + (directory_ / "cache").string() +
                                " " KBENCH_BINARY " " + arguments("/dev/stdin", "--seq 8") + "'");
    EXPECT_EQ(piped.exit_code, 0) << piped.err;
    const std::string folder = std::filesystem::path(file).parent_path().string();
    expect_refusal(arguments(folder, ""), "is a directory; give the config.json in it: " + folder + "/config.json");
}

}  // namespace
}  // namespace kbench
