// What every family makes of the keys of its config.json: none that changes the result is passed over in silence.
#include "models/base/config_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "kbench/error.h"
#include "models/deepspeech2.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/mlp.h"
#include "models/registry.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

std::string refusal(const Json& json, const std::string& path = "config.json") {
    try {
        read_model(json.is_string() ? json.get<std::string>() : json.dump(), path);
    } catch (const UsageError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        return error.what();
    }
    return "accepted";
}

const Json& gpt2() {
    static const Json json = Json::parse(R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4,
                                             "vocab_size": 61, "n_positions": 16})");
    return json;
}
const Json& speech() {
    static const Json json = Json::parse(R"({"model_type": "deepspeech2", "rnn_type": "lstm", "hidden_size": 8,
                                             "hidden_layers": 2})");
    return json;
}
const Json& llama() {
    static const Json json = Json::parse(R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2,
                                             "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 61,
                                             "max_position_embeddings": 16})");
    return json;
}
const Json& perceptron() {
    static const Json json = Json::parse(R"({"model_type": "mlp", "sizes": [4, 2]})");
    return json;
}

struct Family {
    const FamilyKeys& keys;
    Json json;
};
std::vector<Family> families() {
    return {{gpt2_keys(), gpt2()}, {llama_keys(), llama()}, {deepspeech2_keys(), speech()}, {mlp_keys(), perceptron()}};
}

std::vector<std::string> words(std::string_view names) {
    std::istringstream in{std::string(names)};
    return {std::istream_iterator<std::string>(in), {}};
}

Json with(Json json, const std::string& key, const Json& value) {
    json[key] = value;
    return json;
}

TEST(ConfigKeys, EveryKeyOfATableHasOnePlaceAndAReason) {
    for (const Family& family : families()) {
        std::set<std::string> seen;
        const auto look = [&](const auto& rows) {
            for (const auto& row : rows) {
                EXPECT_FALSE(row.why.empty()) << row.names;
                for (const std::string& name : words(row.names))
                    EXPECT_TRUE(seen.insert(name).second) << family.keys.family << " has " << name << " twice";
            }
        };
        look(family.keys.understood);
        look(family.keys.refused);
        look(family.keys.harmless);
        for (const RefusedKeys& row : family.keys.refused)
            EXPECT_TRUE(row.off.empty() || Json::parse(row.off).is_array()) << row.names;
    }
}

TEST(ConfigKeys, WhatChangesTheResultIsRefusedByNameUnlessItIsOff) {
    for (const Family& family : families()) {
        ASSERT_EQ(refusal(family.json), "accepted");
        for (const RefusedKeys& row : family.keys.refused)
            for (const std::string& name : words(row.names)) {
                EXPECT_THAT(refusal(with(family.json, name, "something else")),
                            AllOf(StartsWith("config.json: "), HasSubstr("key '" + name + "'"), HasSubstr(row.why)));
                EXPECT_EQ(refusal(with(family.json, name, nullptr)), "accepted") << name;
                for (const Json& off : Json::parse(row.off))
                    EXPECT_EQ(refusal(with(family.json, name, off)), "accepted") << name << " " << off;
            }
    }
}

TEST(ConfigKeys, HarmlessOnesSayNothing) {
    for (const Family& family : families())
        for (const HarmlessKeys& row : family.keys.harmless)
            for (const std::string& name : words(row.names))
                EXPECT_THAT(read_model(with(family.json, name, 7).dump(), "c.json").notes, IsEmpty()) << name;
}

TEST(ConfigKeys, OthersAreToldAsIgnoredOnce) {
    for (const Family& family : families()) {
        const Json more = with(with(family.json, "favourite_colour", "blue"), "nothing", nullptr);
        EXPECT_THAT(read_model(more.dump(), "c.json").notes,
                    testing::ElementsAre("c.json: ignored, since kbench does not know them: favourite_colour"));
    }
    EXPECT_THAT(read_model(with(gpt2(), "layer_norm_epsilom", 1e-3).dump(), "c.json").notes,
                testing::ElementsAre(HasSubstr("layer_norm_epsilom (is 'layer_norm_epsilon' meant?)")));
    Json many = gpt2();
    for (int i = 0; i < 1000; ++i) many["key" + std::to_string(i)] = i;
    EXPECT_THAT(read_model(many.dump(), "c.json").notes.at(0), testing::EndsWith("and 988 more"));
    EXPECT_THAT(read_model(with(gpt2(), "\x1b[31m", 1).dump(), "c.json").notes.at(0), Not(HasSubstr("\x1b")));
}

TEST(ConfigKeys, AKeyThatNobodyReadsWhereItStandsIsRefused) {
    EXPECT_EQ(
        refusal(with(gpt2(), "text_config", {{"inner", {{"n_layer", 7}}}})),
        "config.json: key 'n_layer' stands in 'text_config.inner', where kbench does not read it; write it at the top");
    EXPECT_THAT(refusal(with(speech(), "params", Json::array({{{"hidden_size", 7}}}))),
                HasSubstr("key 'hidden_size' stands in 'params'"));
    EXPECT_THAT(refusal(with(speech(), "data", {{"spect", {{"hidden_size", 7}}}})),
                HasSubstr("key 'data.spect.hidden_size' is not read there"));
    EXPECT_EQ(refusal(with(gpt2(), "task_specific_params", {{"text-generation", {{"max_length", 50}}}})), "accepted");
}

TEST(ConfigKeys, TransformersCommonNamesAreRead) {
    const Json common = Json::parse(R"({"model_type": "gpt2", "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 16, "vocab_size": 61})");
    EXPECT_EQ(read_model(common.dump(), "c.json").description, read_model(gpt2().dump(), "c.json").description);
    EXPECT_EQ(refusal(with(common, "n_embd", 32)), "accepted") << "both names, one value";
    EXPECT_EQ(refusal(with(common, "n_embd", 64)),
              "config.json: key 'n_embd' is 64, but 'hidden_size', which means the same, is 32; leave one of them out");
    EXPECT_EQ(refusal(with(common, "n_embd", nullptr)), "accepted");
    EXPECT_THAT(refusal(with(gpt2(), "n_ctx", 32)), HasSubstr("'n_ctx', which means the same, is 32"));
    EXPECT_THAT(refusal(with(common, "hidden_size", "32")), HasSubstr("key 'hidden_size' is \"32\""));
    Json without = common;
    without.erase("model_type");
    EXPECT_THAT(refusal(without), HasSubstr("key 'model_type' is missing")) << "many families have these names";
}

TEST(ConfigKeys, OnlyTheHeadOfALanguageModelIsComputed) {
    for (const char* name : {"GPT2LMHeadModel", "TFGPT2LMHeadModel", "FlaxGPT2LMHeadModel"})
        EXPECT_THAT(read_model(with(gpt2(), "architectures", {name}).dump(), "c.json").notes, IsEmpty()) << name;
    EXPECT_THAT(read_model(with(gpt2(), "architectures", {"GPT2Model"}).dump(), "c.json").notes,
                testing::ElementsAre(HasSubstr("GPT2Model has no head")));
    for (const char* name : {"GPT2ForSequenceClassification", "LlamaForCausalLM", "GPT2LMHeadCustomModel"})
        EXPECT_THAT(refusal(with(gpt2(), "architectures", {name})), HasSubstr(name));
    EXPECT_THAT(refusal(with(gpt2(), "architectures", "GPT2LMHeadModel")), HasSubstr("it must be a list of strings"));
}

TEST(ConfigKeys, HeadsThatArePrunedNowhereAreAll) {
    EXPECT_EQ(refusal(with(gpt2(), "pruned_heads", {{"0", Json::array()}})), "accepted");
    EXPECT_THAT(refusal(with(gpt2(), "pruned_heads", {{"0", {1, 2}}})),
                HasSubstr("key 'pruned_heads' is {\"0\":[1,2]}: kbench keeps every head of every layer"));
    EXPECT_EQ(refusal(with(gpt2(), "num_key_value_heads", 4)), "accepted") << "as many as heads";
    EXPECT_THAT(refusal(with(gpt2(), "num_key_value_heads", 2)), HasSubstr("it may be the same as 'n_head'"));
}

TEST(ConfigKeys, DeepSpeechIsReadAsItsTrainerNestsIt) {
    const ModelSpec nested = read_model(R"({"model_type": "deepspeech2",
        "model": {"rnn_type": "gru", "hidden_size": 64, "hidden_layers": 7},
        "data": {"spect": {"sample_rate": 8000, "window_size": 0.02, "window_stride": 0.01, "window": "hamming"},
                 "labels_path": "labels.json", "augmentation": {"speed_volume_perturb": false}},
        "optim": {"learning_rate": 1.5e-4}, "trainer": {"max_epochs": 70}})",
                                        "c.json");
    EXPECT_THAT(
        nested.description,
        HasSubstr(
            "rnn_type gru, hidden_size 64, hidden_layers 7, conv_channels 32, labels 29, sample_rate 8000, window_size 0.02"));
    EXPECT_THAT(nested.notes, IsEmpty());
    std::map<std::string, std::string> from;
    for (const ReadKey& key : nested.configuration) from[key.key] = key.from;
    EXPECT_EQ(from["hidden_size"], "model.hidden_size");
    EXPECT_EQ(from["sample_rate"], "data.spect.sample_rate");
    EXPECT_EQ(from["labels"], "") << "the default";

    const ModelSpec checkpoint = read_model(R"({"model_type": "deepspeech2", "version": 1, "hidden_size": 16,
        "hidden_layers": 2, "rnn_type": "rnn", "bidirectional": true, "labels": ["_", "'", "A", " "],
        "audio_conf": {"sample_rate": 16000, "window_size": 0.02, "window_stride": 0.01, "window": "hamming"}})",
                                            "c.json");
    EXPECT_THAT(checkpoint.description, HasSubstr("hidden_size 16, hidden_layers 2, conv_channels 32, labels 4"));
    EXPECT_THAT(refusal(with(speech(), "model", {{"hidden_size", 9}})),
                HasSubstr("key 'hidden_size' is 8, but 'model.hidden_size', which means the same, is 9"));
    for (const Json& wrong : {Json("_'AB"), Json({"A", "A"}), Json({1, 2}), Json::array()})
        EXPECT_THAT(refusal(with(speech(), "labels", wrong)), HasSubstr("key 'labels' is ")) << wrong;
}

TEST(ConfigKeys, DeepSpeechGoesBothWaysOrNotAtAll) {
    EXPECT_THAT(refusal(with(speech(), "bidirectional", false)),
                HasSubstr("key 'bidirectional' is false: kbench's recurrent layers go both ways"));
    EXPECT_THAT(refusal(with(speech(), "lookahead_context", 20)), HasSubstr("key 'lookahead_context' is 20"));
    EXPECT_EQ(refusal(with(with(speech(), "bidirectional", true), "lookahead_context", 20)), "accepted") << "unused";
    EXPECT_THAT(refusal(with(speech(), "model", {{"lookahead_context", 20}})),
                HasSubstr("key 'model.lookahead_context' is 20"));
    EXPECT_THAT(refusal(with(speech(), "model", "unidirectional")), HasSubstr("key 'model' is \"unidirectional\""));
}

TEST(ConfigKeys, AFileWithoutAKeyOfItsFamilyIsRefused) {
    for (const char* text : {R"({"model_type": "deepspeech2"})", R"({"model_type": "deepspeech2", "name": "mine"})",
                             R"({"model_type": "deepspeech2", "encoder": {"layers": 5}, "decoder": {"units": 29}})"})
        EXPECT_THAT(refusal(text), HasSubstr("no key of a Deep Speech 2 was found; its keys are rnn_type")) << text;
    for (const char* text : {"{}", R"({"rnn_type": "gru", "hidden_size": 64})", R"({"peft_type": "LORA", "r": 8})"})
        EXPECT_THAT(refusal(text), HasSubstr("key 'model_type' is missing")) << text;
}

TEST(ConfigKeys, ReadKeysAreToldWithTheNameThatTheyHad) {
    Json json = gpt2();
    json.erase("n_embd");
    json["hidden_size"] = 32;
    std::map<std::string, std::pair<std::string, std::string>> read;
    for (const ReadKey& key : read_model(json.dump(), "c.json").configuration) read[key.key] = {key.value, key.from};
    using Pair = std::pair<std::string, std::string>;
    EXPECT_EQ(read["n_embd"], Pair("32", "hidden_size"));
    EXPECT_EQ(read["n_layer"], Pair("2", "n_layer"));
    EXPECT_EQ(read["n_inner"], Pair("4 * n_embd", ""));
    EXPECT_EQ(read["activation_function"], Pair("gelu_new", ""));
    EXPECT_EQ(read["tie_word_embeddings"], Pair("true", ""));
    EXPECT_THAT(find_model("gpt2").configuration, IsEmpty()) << "a built-in model has no file";
}

TEST(ConfigKeys, WhatIsNoPlainJsonIsRefusedInWordsThatHelp) {
    EXPECT_THAT(refusal(R"({"n_embd": 32, "n_layer": 2, "n_embd": 64})"), HasSubstr("key 'n_embd' stands twice"));
    EXPECT_THAT(refusal(R"({"n_embd": 32, "x": [{"a": {"b": 1, "b": 2}}]})"), HasSubstr("key 'b' stands twice"));
    EXPECT_THAT(refusal(R"({"x": {"n_embd": 1}, "n_embd": 32})"), Not(HasSubstr("twice")));
    EXPECT_THAT(refusal("{\"n_embd\": 32, // columns\n \"n_layer\": 2}"), HasSubstr("has comments"));
    EXPECT_THAT(refusal(" \n"), HasSubstr("is empty"));
    EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), HasSubstr("Git LFS pointer"));
    EXPECT_THAT(refusal("\n<!DOCTYPE html>"), HasSubstr("web page"));
    EXPECT_THAT(refusal("n_embd: 32\nn_layer: 2\n", "config.yaml"), HasSubstr("is YAML"));
    EXPECT_THAT(refusal(Json(std::string("\xff\xfe{\0}\0", 6))), HasSubstr("is UTF-16"));
    EXPECT_THAT(refusal(Json(std::string("{\0\"\0", 4))), HasSubstr("is UTF-16"));
    EXPECT_EQ(refusal("\xef\xbb\xbf" + gpt2().dump()), "accepted") << "UTF-8 with its mark";
    EXPECT_THAT(refusal(R"({"n_embd": 1e999})"), HasSubstr("not JSON"));
    EXPECT_THAT(refusal(R"({"n_embd": 32, "n_layer": 1e3, "n_head": 4})"), HasSubstr("key 'n_layer' is 1000.0"));
}

}  // namespace
}  // namespace kbench
