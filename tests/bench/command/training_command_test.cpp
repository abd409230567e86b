// `kbench train` as a user calls it, and backwards that `kbench run` measures: what they print, save and go on from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>

#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class TrainingCommand : public Program {};

TEST_F(TrainingCommand, TrainsSavesAndGoesOn) {
    const std::string file = (directory_ / "w.safetensors").string(),
                      train =
                          "train --config " + tiny_config() + " --backend cpu --seq 16 --batch 4 --steps 3 --lr 1e-3 ";
    const Outcome first = kbench(train + "--log-every 1 --save " + file);
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_THAT(first.out, HasSubstr("dropout 0"));
    EXPECT_THAT(first.out, ContainsRegex("step +2/3  loss 5\\.[0-9]+ \\(entropy [12]\\.[0-9]+\\)"));
    EXPECT_THAT(first.out, ContainsRegex("3 steps in .*: loss 5\\.[0-9]+ -> 5\\.[0-9]+ \\(mean of the last 3\\)"));
    EXPECT_THAT(first.out, HasSubstr("wrote " + file));
    const Outcome second = kbench(train + "--weights " + file + " --data " +
                                  directory_.write("t.txt", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17").string());
    EXPECT_EQ(second.exit_code, 0) << second.err;
    EXPECT_THAT(second.out, HasSubstr("weights w.safetensors"));
    EXPECT_THAT(second.out, Not(HasSubstr("entropy")));
}

TEST_F(TrainingCommand, DeterministicRunsLeaveTheSameBits) {
    const auto once = [&](const std::string& name) {
        const std::string gradients = (directory_ / (name + ".g")).string(),
                          weights = (directory_ / (name + ".w")).string(), out = (directory_ / name).string();
        const Outcome run = kbench(
            "run --config " + tiny() +
            " --backend cpu --seq 16 --batch 2 --direction train --deterministic --latency-only --quick --no-verify --out " +
            out + " --dump-gradients " + gradients);
        EXPECT_EQ(run.exit_code, 0) << run.err;
        EXPECT_THAT(read_text(out + "/result.json"), HasSubstr(R"("deterministic": "yes")"));
        const Outcome train = kbench("train --config " + tiny_config() +
                                     " --backend cpu --seq 16 --steps 3 --lr 1e-2 --deterministic --save " + weights);
        EXPECT_EQ(train.exit_code, 0) << train.err;
        return read_text(gradients) + read_text(weights);
    };
    const std::string first = once("first");
    EXPECT_GT(first.size(), 400000u) << "of 120 thousand parameters";
    EXPECT_TRUE(first == once("second"));
}

TEST_F(TrainingCommand, ATrainingThatGoesOnLeavesTheFileOfOneThatNeverStopped) {
    const std::string tokens = directory_.write("t.txt", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20").string();
    for (const std::string& source : {std::string("synthetic"), tokens}) {
        const auto train = [&](const std::string& more) {
            const Outcome outcome =
                kbench("train --config " + tiny_config() +
                       " --backend cpu --seq 16 --batch 2 --accumulate 2 --warmup 4 --lr 1e-2 --deterministic --data " +
                       source + more);
            EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
            return outcome.out;
        };
        const std::string whole = (directory_ / "whole").string(), part = (directory_ / "part").string(),
                          rest = (directory_ / "rest").string();
        train(" --steps 6 --save " + whole);
        train(" --steps 3 --save " + part);
        EXPECT_THAT(train(" --steps 3 --weights " + part + " --save " + rest),
                    HasSubstr("goes on after 3 steps and 192 tokens"));
        EXPECT_TRUE(read_text(whole) == read_text(rest)) << source;
        EXPECT_FALSE(read_text(whole) == read_text(part));
        const Outcome run =
            kbench("run --config " + tiny() + " --backend cpu --quick --no-verify --latency-only " + "--weights " +
                   whole + " --out " + (directory_ / (source == tokens ? "of-file" : "of-source")).string());
        EXPECT_EQ(run.exit_code, 0) << "a checkpoint is a file of weights, too: " << run.err;
    }
}

TEST_F(TrainingCommand, ATrainingOfSpeechSaysWhatItRecognisesAndGoesOn) {
    const std::string small = config(
        R"({"model_type": "deepspeech2", "hidden_size": 12, "hidden_layers": 2, "conv_channels": 3, "labels": 5,
            "sample_rate": 1600})");
    const auto train = [&](const std::string& more) {
        const Outcome outcome =
            kbench("train --config " + small + " --backend cpu --frames 60 --batch 3 --lr 1e-3 --deterministic" + more);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        return outcome.out;
    };
    const std::string whole = (directory_ / "whole").string(), part = (directory_ / "part").string(),
                      rest = (directory_ / "rest").string();
    const std::string told = train(" --steps 4 --save " + whole);
    EXPECT_THAT(told, HasSubstr("batch 3 of up to 60 frames, synthetic"));
    EXPECT_THAT(told, HasSubstr("utterances/s"));
    EXPECT_THAT(told, ContainsRegex("3 utterances that it has not seen, .*% of the labels are wrong"));
    EXPECT_THAT(told, ContainsRegex("said +[1-4 ]+\n +recognised"));
    train(" --steps 2 --save " + part);
    EXPECT_THAT(train(" --steps 2 --weights " + part + " --save " + rest),
                HasSubstr("goes on after 2 steps and 6 utterances"));
    EXPECT_TRUE(read_text(whole) == read_text(rest)) << "with the running means of its batch norms";
    EXPECT_FALSE(read_text(whole) == read_text(part));
    expect_refusal("train --config " + small + " --backend cpu --data t.txt", "learns from synthetic speech only");
    expect_refusal("train --config " + small + " --backend cpu --seq 8", "seq");
    expect_refusal("train --config " + tiny_config() + " --backend cpu --frames 8", "frames");
}

TEST_F(TrainingCommand, SpeechIsLearnt) {
    const std::string small = config(
        R"({"model_type": "deepspeech2", "hidden_size": 64, "hidden_layers": 1, "conv_channels": 8, "labels": 6,
            "sample_rate": 1600})");
    const auto wrong_after = [&](const std::string& steps) {
        const Outcome outcome =
            kbench("train --config " + small +
                   " --backend cpu --frames 120 --batch 8 --lr 3e-3 --clip-norm 100 --steps " + steps);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        constexpr std::string_view before = "greedy decoding: ";
        const std::size_t at = outcome.out.find(before);
        EXPECT_NE(at, std::string::npos) << outcome.out;
        return at == std::string::npos ? 1e9 : std::stod(outcome.out.substr(at + before.size()));
    };
    EXPECT_GT(wrong_after("1"), 50);
    EXPECT_LT(wrong_after("120"), 3) << "per cent of the labels of utterances that it has not seen";
}

TEST_F(TrainingCommand, RecomputingTrainsTheSameInLessMemory) {
    const auto losses = [&](const std::string& more) {
        const Outcome outcome = kbench("train --config " + tiny_config() +
                                       " --backend cpu --seq 16 --batch 4 --steps 3 --log-every 1 --lr 1e-3" + more);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_THAT(outcome.out, HasSubstr("saved activations"));
        std::string found;
        for (std::size_t at = 0; (at = outcome.out.find("  loss ", at)) != std::string::npos; ++at)
            found += outcome.out.substr(at, outcome.out.find("norm", at) - at);
        return found;
    };
    EXPECT_EQ(losses(" --recompute block"), losses(""));
}

TEST_F(TrainingCommand, RecomputingIsOfABackwardAndSaysWhatItTakes) {
    const std::string run = "--config " + tiny() + " --backend cpu --quick --out " + (directory_ / "r").string();
    expect_refusal(run + " --recompute block", "--recompute: only --direction bwd or train has one");
    expect_refusal(run + " --direction bwd --recompute all", "none, block");
    const Outcome done = kbench(run + " --direction bwd --recompute block --verbose");
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("recompute block"));
    EXPECT_THAT(done.out, HasSubstr("saved activations"));
    EXPECT_THAT(done.out, ContainsRegex("recomputed +[0-9.,]+ .?FLOP in "));
    const Outcome table = kbench("table -c layer,op,dir,forward --csv " + (directory_ / "r").string());
    EXPECT_THAT(table.out, HasSubstr("h.0.ln_1,layernorm,fwd,h.0.ln_1:layernorm\n"));
    EXPECT_THAT(table.out, HasSubstr("h.0.mlp.c_fc,bias,bwd,h.0.mlp.c_fc:gemm\n"));
}

TEST_F(TrainingCommand, MistakesOfTrainingGetOneLineAndExitTwo) {
    const std::string train = "train --config " + tiny_config() + " --backend cpu ";
    expect_refusal(train + "--steps 0", "--steps '0'");
    expect_refusal(train + "--seq 1", "--seq '1'");
    expect_refusal(train + "--seq 33", "33");
    expect_refusal(train + "--frobnicate", "--frobnicate");
    expect_refusal(train + "--save " + (directory_ / "none/w.safetensors").string(), "none is no directory");
    expect_refusal(train + "--weights /nowhere.safetensors", "/nowhere.safetensors");
    expect_refusal(train + "--seq 4 --data " + directory_.write("t.txt", "1 2 3").string(),
                   "3 tokens; it should hold 4 or more");
    expect_refusal(train + "--seq 4 --data " + directory_.write("t.txt", "1 2 3 4 301").string(),
                   "token 4 is 301; it should be in [0, 301)");
    expect_refusal(train + "--data /nowhere.txt", "/nowhere.txt");
    expect_refusal("train --model mlp --backend cpu", "has no loss to train with");
    expect_refusal("train --backend cpu --config " +
                       config(R"({"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 63, "n_positions": 32})"),
                   "--data synthetic: has 64 tokens, the model's vocabulary 63");
}

TEST_F(TrainingCommand, AnInterruptedTrainingSavesItsWeights) {
    const std::string file = (directory_ / "w.safetensors").string(), log = (directory_ / "log").string();
    const std::string train = " train --config " + tiny_config() + " --backend cpu --seq 16 --batch 2 --log-every 1 ";
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        std::filesystem::remove(file), std::filesystem::remove(log);
        // A shell lets its background jobs ignore SIGINT, nohup lets all ignore SIGHUP.
        const Outcome outcome =
            shell("(env --default-signal=INT,HUP " KBENCH_BINARY + train + "--steps 20000 --save " + file + " > " +
                  log + " & p=$!; until grep -q 'step  *3/' " + log + " || ! kill -0 $p; do sleep 0.02; done; kill -" +
                  std::to_string(signal) + " $p; wait $p)");
        EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome.err;
        EXPECT_THAT(outcome.err, ContainsRegex(std::string("stopped by SIG") + sigabbrev_np(signal) +
                                               " after [0-9]+ of 20000 steps"));
        EXPECT_THAT(read_text(log), HasSubstr("wrote " + file));
        EXPECT_EQ(kbench(train + "--steps 1 --weights " + file).exit_code, 0);
    }
}

}  // namespace
}  // namespace kbench
