// The command line: what is accepted, and one clear line for what is not.
#include "bench/command/options.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "models/registry.h"
#include "tests/bench/refusal.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

std::string refusal(const std::vector<std::string>& arguments) {
    return refusal_of([&] { parse_run(arguments); });
}

TEST(Options, DefaultsAreTheCheckpointsPrecisionAndBatchOne) {
    const RunRequest r = parse_run({"--model", "gpt2-large", "--seq", "1024"}).request;
    EXPECT_EQ(r.run.model.name, "gpt2-large");
    EXPECT_THAT(r.run.model.description, HasSubstr("n_layer 36,"));
    const AxisValues point = r.run.points().at(0).axes;
    EXPECT_EQ(point.text("precision"), "fp32");
    EXPECT_EQ(point.count("batch"), 1);
    EXPECT_EQ(point.count("seq"), 1024);
    EXPECT_EQ(point.text("attention"), "fused");
    EXPECT_EQ(r.device.backend, "auto");
    EXPECT_TRUE(r.run.verify);
}

TEST(Options, ListsAreSweeps) {
    const RunRequest r =
        parse_run({"--model", "gpt2", "--batch", "1,4,8", "--precision=fp16,fp64", "--seq", "128,512"}).request;
    EXPECT_EQ(r.run.values.at("batch"), (std::vector<AxisValue>{1, 4, 8}));
    EXPECT_EQ(r.run.values.at("precision"), (std::vector<AxisValue>{"fp16", "fp64"}));
    EXPECT_EQ(r.run.values.at("seq"), (std::vector<AxisValue>{128, 512}));
}

TEST(Options, PrecisionsAreSpeltAsPyTorchNumPyAndCSpellThem) {
    const auto called = [](const std::string& spelling) {
        return parse_run({"--model", "gpt2", "--precision", spelling})
            .request.run.points()
            .at(0)
            .axes.text("precision");
    };
    for (const char* half : {"FP16", "float16", "half", "Half"}) EXPECT_EQ(called(half), "fp16") << half;
    for (const char* whole : {"fp32", "Float32"}) EXPECT_EQ(called(whole), "fp32") << whole;
    for (const char* twice : {"FP64", "float64", "double"}) EXPECT_EQ(called(twice), "fp64") << twice;
    EXPECT_EQ(called("BFloat16"), "bf16");
    EXPECT_EQ(called("TF32"), "tf32");
    EXPECT_EQ(parse_run({"--model", "gpt2", "--direction", "train", "--precision", "half", "--master", "Float32"})
                  .request.run.values.at("master"),
              (std::vector<AxisValue>{"fp32"}));
    EXPECT_THAT(refusal({"--model", "gpt2", "--precision", "halt"}), HasSubstr("'halt': must be one of fp16, "));
    EXPECT_THAT(refusal({"--model", "gpt2", "--cell", "half"}), HasSubstr("must be one of lstm, gru, rnn"));
}

TEST(Options, GivenTwiceAreRefusedWhereTheyDoNotRepeat) {
    const auto of_gpt2 = [](std::vector<std::string> more) {
        more.insert(more.begin(), {"--model", "gpt2"});
        return refusal(more);
    };
    EXPECT_EQ(of_gpt2({"--batch", "1", "--batch=2"}), "--batch is given twice; a list is --batch 1,2");
    EXPECT_EQ(of_gpt2({"--model", "gpt2"}), "--model is given twice; give it once");
    EXPECT_EQ(of_gpt2({"--quick", "--quick"}), "--quick is given twice; give it once");
    EXPECT_EQ(of_gpt2({"-v", "--verbose"}), "--verbose is given twice; give it once");
    const RunRequest r = parse_run({"--model", "gpt2", "--provider", "gemm=blas", "--provider", "gelu=native",
                                    "--input", "tokens=t", "--input", "lengths=l"})
                             .request;
    EXPECT_EQ(r.run.providers.size(), 2U);
    EXPECT_EQ(r.run.inputs.size(), 2U);
}

/// What a row of the table of axes gives the command line, whatever the axis.
TEST(Options, EveryAxisWithAnOptionSetsItsPoints) {
    const std::string help = parse_run({"--help"}).help;
    for (const Axis& axis : axes()) {
        const std::string option = fmt::format("--{}", axis.name);
        if (axis.option.empty()) continue;
        EXPECT_THAT(help, HasSubstr(option + " " + std::string(axis.option)));
        const auto words = axis.offered_words();
        const std::string value = axis.kind == AxisKind::count ? "3" : std::string(words.back());
        const auto has_it = [&](const ModelSpec& model) { return model.axis(axis.name) != nullptr; };
        const std::string model = axis.of_model ? std::ranges::find_if(builtin_models(), has_it)->name : "gpt2";
        std::vector<std::string> arguments{"--model", model, option, value};
        if (axis.of_training || axis.of_backward)
            arguments.insert(arguments.end(), {"--direction", "train", "--precision", "bf16"});
        if (!axis.phases.empty()) arguments.insert(arguments.end(), {"--phase", std::string(axis.phases.front())});
        const RunRequest request = parse_run(arguments).request;
        EXPECT_EQ(text_of(*request.run.points().at(0).axes.find(axis.name)), value);
        EXPECT_THAT(refusal({"--model", model, option, "-1"}), HasSubstr(option + " '-1': must be "));
        arguments[3] = value + "," + value;
        const bool takes_list = refusal(arguments).find("asked for twice") != std::string::npos;
        EXPECT_EQ(takes_list, axis.sweeps) << option;
    }
}

TEST(Options, ADecodeStepBesideAPrefillIsTheLastOfItsCache) {
    const auto pasts = [](const std::vector<std::string>& more) {
        std::vector<std::string> arguments{"--model", "gpt2", "--phase", "prefill,decode"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        std::vector<std::int64_t> of;
        for (const PointSpec& point : parse_run(arguments).request.run.points())
            if (const auto past = point.axes.count("past")) of.push_back(*past);
        return of;
    };
    using testing::ElementsAre;
    EXPECT_THAT(pasts({"--seq", "992"}), ElementsAre(992)) << "the first new token, where no more are asked for";
    EXPECT_THAT(pasts({"--seq", "992", "--new", "32"}), ElementsAre(1023));
    EXPECT_THAT(pasts({"--seq", "100,500", "--new", "4"}), ElementsAre(103, 503));
    EXPECT_THAT(pasts({"--seq", "992", "--past", "7"}), ElementsAre(7));
    EXPECT_THAT(pasts({}), ElementsAre(1023));
    EXPECT_EQ(refusal({"--model", "gpt2", "--phase", "decode", "--new", "4"}), "--new: only --phase prefill has one");
}

TEST(Options, TheLargestBatchHasAWordInAList) {
    EXPECT_EQ(parse_run({"--model", "gpt2", "--batch", "1,max"}).request.run.values.at("batch"),
              (std::vector<AxisValue>{1, max_batch}));
    EXPECT_THAT(refusal({"--model", "gpt2", "--batch", "most"}), HasSubstr("--batch 'most': must be max or a whole"));
}

TEST(Options, ZippedListsAreOfOneLength) {
    const RunRequest r =
        parse_run({"--model", "gpt2", "--batch", "1,4", "--seq", "512,128", "--zip", "batch,seq"}).request;
    EXPECT_EQ(r.run.points().size(), 2u);
    EXPECT_THAT(refusal({"--model", "gpt2", "--batch", "1,4,8", "--seq", "512,128", "--zip", "batch,seq"}),
                HasSubstr("--seq has 2 values and --batch 3"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--zip", "batch"}), HasSubstr("--zip 'batch': must be two or "));
    EXPECT_THAT(refusal({"--model", "gpt2", "--zip", "batch,heads"}),
                HasSubstr("one of direction, phase, seq, past, frames, batch, "));
}

TEST(Options, ASweepIsResumedWhereItsDirectoryIsNamed) {
    EXPECT_THAT(refusal({"--model", "gpt2", "--resume"}), HasSubstr("name the sweep's directory with --out"));
    EXPECT_EQ(refusal({"--model", "gpt2", "--resume", "--out", "sweep"}), "accepted");
    EXPECT_THAT(refusal({"--model", "gpt2", "--batch", "2,2"}), HasSubstr("asked for twice"));
}

TEST(Options, AShardIsAPartOfSoMany) {
    const RunOptions run = parse_run({"--model", "gpt2", "--repeat", "3", "--shard", "2/3"}).request.run;
    EXPECT_EQ(run.shard, 2);
    EXPECT_EQ(run.shards, 3);
    for (const char* text : {"", "2", "/", "2/", "/2", "0/2", "a/b", "1/2/3", "-1/2", "1.5/2"})
        EXPECT_THAT(refusal({"--model", "gpt2", "--repeat", "3", "--shard", text}), HasSubstr("must be I/N")) << text;
    EXPECT_THAT(refusal({"--model", "gpt2", "--repeat", "3", "--shard", "4/3"}), HasSubstr("no part 4 of 3"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--repeat", "3", "--shard", "1/4"}), HasSubstr("has 3 points"));
}

TEST(Options, AllPrecisionsHaveAWord) {
    EXPECT_EQ(parse_run({"--model", "gpt2", "--precision", "all"}).request.run.values.at("precision").size(), 5u);
}

TEST(Options, ProvidersAreChosenByOp) {
    const RunRequest r = parse_run({"--model", "gpt2", "--provider", "gemm=cublas,attention=native"}).request;
    EXPECT_EQ(r.run.providers.at("gemm"), "cublas");
    EXPECT_EQ(r.run.providers.at("attention"), "native");
}

TEST(Options, InputsAndOutputsHaveTheirFilesByName) {
    const RunRequest r =
        parse_run({"--model", "gpt2", "--input", "tokens=t.npy", "--dump-output", "logits=a=b.npy"}).request;
    EXPECT_EQ(r.run.inputs, (FilesByName{{"tokens", "t.npy"}}));
    EXPECT_EQ(r.run.dumps, (FilesByName{{"logits", "a=b.npy"}}));
    const RunRequest shorter = parse_run({"--model", "gpt2", "--tokens", "t.npy", "--dump-logits", "x.npy"}).request;
    EXPECT_EQ(shorter.run.inputs, r.run.inputs);
    EXPECT_EQ(shorter.run.dumps, (FilesByName{{"logits", "x.npy"}}));
    for (const char* option : {"--input", "--dump-output"})
        for (const char* wrong : {"tokens", "=t.npy", "tokens="})
            EXPECT_EQ(refusal({"--model", "gpt2", option, wrong}),
                      std::string(option) + " '" + wrong + "': must be name=file");
}

TEST(Options, AttentionIsAWordOfTheModel) {
    const RunOptions run = parse_run({"--model", "gpt2", "--attention", "unfused"}).request.run;
    EXPECT_EQ(run.points().at(0).axes.text("attention"), "unfused");
    EXPECT_THAT(refusal({"--model", "gpt2", "--attention", "flash"}), HasSubstr("fused, unfused"));
}

TEST(Options, LengthsAreAWordOrAFileWhereTheModelHasThem) {
    const TemporaryDirectory folder;
    const std::string file = folder / "lengths.txt";
    std::ofstream(file) << "7";
    const auto run = [](const std::string& text) {
        return parse_run({"--model", "deepspeech2", "--lengths", text}).request.run;
    };
    EXPECT_EQ(run(file).inputs, (FilesByName{{"lengths", file}}));
    EXPECT_EQ(run(file).points().at(0).axes.text("lengths"), "file");
    EXPECT_EQ(run("librispeech-like").points().at(0).axes.text("lengths"), "librispeech-like");
    EXPECT_TRUE(run("librispeech-like").inputs.empty());
    const RunOptions by_input = parse_run({"--model", "deepspeech2", "--input", "lengths=" + file}).request.run;
    EXPECT_EQ(by_input.points().at(0).axes.text("lengths"), "file");
    EXPECT_EQ(parse_run({"--model", "deepspeech2"}).request.run.points().at(0).axes.text("lengths"), "full");

    EXPECT_EQ(refusal({"--model", "deepspeech2", "--lengths", "librispeech"}),
              "--lengths 'librispeech': must be full, librispeech-like or a file");
    for (const std::string& value : {file, std::string("librispeech-like")})
        EXPECT_EQ(refusal({"--model", "gpt2", "--lengths", value}), "--lengths: the model has no lengths");
    EXPECT_THAT(refusal({"--model", "deepspeech2", "--lengths", "librispeech-like", "--input", "lengths=" + file}),
                HasSubstr("leave out one of them"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--tokens", "a.npy", "--input", "tokens=b.npy"}),
                HasSubstr("tokens comes from a.npy already; leave out one"));
}

TEST(Options, WrongValuesSayWhatWouldBeRight) {
    EXPECT_THAT(refusal({"--model", "gpt2", "--batch", "0"}),
                HasSubstr("--batch '0': must be max or a whole number of at least 1"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--batch", "two"}), HasSubstr("--batch 'two'"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--batch", "1.5"}), HasSubstr("--batch '1.5'"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--seq", "99999"}), HasSubstr("over gpt2's n_ctx 1024"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--precision", "fp8"}), HasSubstr("fp16, bf16, tf32, fp32, fp64"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--backend", "tpu"}), HasSubstr("auto, cuda, cpu"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--direction", "sideways"}), HasSubstr("fwd"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--provider", "gemm"}), HasSubstr("op=name"));
    EXPECT_THAT(refusal({"--model", "gpt2-lrage"}), HasSubstr("gpt2-large"));
    EXPECT_THAT(refusal({}), HasSubstr("--model is missing"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--config", "x.json"}), HasSubstr("exclude each other"));
    EXPECT_THAT(refusal({"--config", "/nowhere/config.json"}), HasSubstr("cannot be read"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--sequence", "8"}), HasSubstr("--sequence"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--dump-logits", "none/x.npy", "--out", "other"}),
                HasSubstr("--dump-output none/x.npy: none is no directory"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--direction", "bwd", "--dump-gradients", "none/x", "--out", "none/../no"}),
                HasSubstr("--dump-gradients none/x: none is no directory"));
    EXPECT_THAT(refusal({"--model", "gpt2", "--direction", "bwd", "--dump-gradients", "."}),
                HasSubstr("is a directory; it should be a file"));
    const std::string whole = (std::filesystem::current_path() / "new/x.npy").string();
    for (const std::string& inside : {std::string("new/x.npy"), std::string("./new/../new/x.npy"), whole})
        EXPECT_EQ(parse_run({"--model", "gpt2", "--dump-logits", inside, "--out", "new"}).request.run.dumps.size(), 1u);
    EXPECT_THAT(refusal({"--model", "gpt2", "--batch", "1,2", "--dump-logits", "x.npy"}),
                HasSubstr("--dump-output holds one point, the sweep has 2"));
}

TEST(Options, WhatIsDeterministicMeasuresNoAlgorithm) {
    EXPECT_TRUE(parse_run({"--model", "gpt2", "--deterministic"}).request.run.deterministic);
    EXPECT_FALSE(parse_run({"--model", "gpt2"}).request.run.deterministic);
    EXPECT_THAT(refusal({"--model", "gpt2", "--deterministic", "--retune"}), HasSubstr("leave out one"));
}

TEST(Options, HelpNamesEveryOption) {
    const std::string help = parse_run({"--help"}).help;
    for (const Option& option : run_options()) EXPECT_THAT(help, HasSubstr(std::string(option.name)));
}

TEST(Options, TheReferenceInDocsIsTheTable) {
    const std::string path = std::string(KBENCH_SOURCE_DIR) + "/docs/command-line.md";
    if (std::getenv("KBENCH_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << options_markdown();
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), options_markdown()) << "KBENCH_UPDATE_GOLDEN=1 writes it again";
}

TEST(Options, QuickLowersTheBudgetUnlessOneIsGiven) {
    EXPECT_EQ(parse_run({"--model", "gpt2", "--quick"}).request.run.sampler.time_budget_s, 1);
    EXPECT_EQ(parse_run({"--model", "gpt2", "--quick", "--time-budget", "7"}).request.run.sampler.time_budget_s, 7);
    EXPECT_EQ(parse_run({"--model", "gpt2"}).request.run.experiments_s, 7);
    EXPECT_EQ(parse_run({"--model", "gpt2", "--time-budget", "2"}).request.run.experiments_s, 2);
}

TEST(Options, CountersAreRequiredOnlyWhenNamed) {
    const auto counters = [](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {"--model", "gpt2"});
        return parse_run(arguments).request.run.counters;
    };
    EXPECT_EQ(counters({}).sets, std::vector<std::string>{"core"});
    EXPECT_FALSE(counters({}).required);
    EXPECT_TRUE(counters({"--counters", "none"}).nothing());
    EXPECT_FALSE(counters({"--counters", "none"}).required);
    EXPECT_TRUE(counters({"--counters", "core"}).required);
    EXPECT_EQ(counters({"--counters", "tensor,sass"}).sets, (std::vector<std::string>{"tensor", "sass"}));
    for (const std::vector<std::string>& order : {std::vector<std::string>{"--metrics", "ipc", "--counters", "none"},
                                                  {"--counters", "none", "--metrics", "ipc"}}) {
        EXPECT_TRUE(counters(order).required);
        EXPECT_TRUE(counters(order).sets.empty());
        EXPECT_EQ(counters(order).metrics, std::vector<std::string>{"ipc"});
    }
}

}  // namespace
}  // namespace kbench
