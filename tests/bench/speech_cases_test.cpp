// Speech as it comes, given to the built program: one frame, a text that its utterance has no room for, one that is
// faster than the model expects, and a blank within a text. Losses and gradients are those of NumPy, fp64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "bench/plan/data/checkpoint.h"
#include "bench/plan/data/npy.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;

class SpeechCases : public Program {
  protected:
    static std::filesystem::path files_of(const std::string& name) {
        return std::filesystem::path(KBENCH_SOURCE_DIR) / "tests/bench/cases" / name;
    }
    std::string run(const std::string& name, const std::string& options) {
        std::filesystem::remove_all(directory_ / "run");
        return "--config " + (files_of(name) / "config.json").string() +
               " --backend cpu --latency-only --quick --time-budget 0.1 --ceilings none --out " +
               (directory_ / "run").string() + " " + options;
    }
    std::string with_texts(const std::string& name, std::int64_t frames, const std::string& direction = "bwd") {
        const std::string folder = files_of(name).string() + "/";
        return run(name, "--weights " + folder + "model.safetensors --direction " + direction +
                             " --input spectrogram=" + folder + "x.npy --input lengths=" + folder +
                             "lengths.txt --input targets=" + folder + "targets.npy --input target_lengths=" + folder +
                             "target_lengths.npy --batch 2 --precision fp64 --frames " + std::to_string(frames) +
                             " --dump-output losses=" + losses() + " --dump-gradients " + gradients());
    }
    /// The command with another file for one of its inputs.
    std::string with_other(const std::string& command, const std::string& input, const std::string& file) {
        const std::size_t at = command.find(" --input " + input + "=") + input.size() + 10;
        return command.substr(0, at) + file + command.substr(command.find(' ', at));
    }
    std::string losses() { return (directory_ / "losses.npy").string(); }
    std::string gradients() { return (directory_ / "gradients.safetensors").string(); }

    void expect_losses(const std::vector<double>& want) {
        const std::vector<double> got = read_npy_floats(losses()).values;
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
            if (std::isinf(want[i]))
                EXPECT_EQ(got[i], want[i]);
            else
                EXPECT_NEAR(got[i], want[i], 1e-10);
        }
    }
    void expect_gradient(const std::string& name) {
        const FloatArray want = read_npy_floats(files_of(name) / "want_grad_fc.npy");
        std::vector<double> got(want.values.size());
        Checkpoint(gradients())
            .load({.name = "fc.0.module.1.weight", .role = Role::weights, .shape = want.shape}, DataType::fp64,
                  got.data(), want.shape.at(1));
        for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want.values[i], 1e-12) << i;
    }
};

TEST_F(SpeechCases, OneFrameIsMeasured) {
    const Outcome outcome = kbench(run("one-frame", "--frames 1"));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    expect_refusal(run("one-frame", "--frames 1 --direction bwd"), "batch normalisation in training needs 2 elements");
    // One of the batch may be as short: it is trained with the others' statistics.
    const std::string lengths = directory_.write("lengths.txt", "20 1");
    const Outcome ragged = kbench(run("one-frame", "--frames 20 --batch 2 --direction bwd --lengths " + lengths));
    EXPECT_EQ(ragged.exit_code, 0) << ragged.err;
}

TEST_F(SpeechCases, AnUtteranceWithoutAnAlignmentIsCountedAndThePointLives) {
    const Outcome outcome = kbench(with_texts("text-too-long", 60));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    expect_losses({42.80110140745521, std::numeric_limits<double>::infinity()});
    expect_gradient("text-too-long");
    EXPECT_THAT(
        read_text(directory_ / "run/result.json"),
        HasSubstr(
            "1 of 2 utterances have more labels, and blanks between equal ones, than steps: their loss is infinite and their gradient 0"));
    EXPECT_EQ(kbench(with_texts("text-too-long", 60, "train")).exit_code, 0);
}

TEST_F(SpeechCases, ATextMayBeFasterThanTheModelExpects) {
    const Outcome outcome = kbench(with_texts("fast-speaker", 20));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    expect_losses({12.233021444335924, 11.62164727934668});
    expect_gradient("fast-speaker");
    EXPECT_THAT(read_text(directory_ / "run/result.json"), Not(HasSubstr("their loss is infinite")));
}

TEST_F(SpeechCases, TextsOneBehindTheOtherAreReadWithTheirLengths) {
    const std::string texts = directory_.write("texts.json", "[[1, 2, 3], [1, 2, 3, 4, 5, 6]]");
    const std::string command = with_other(with_texts("fast-speaker", 20), "targets", texts);
    const Outcome outcome = kbench(command);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    expect_losses({12.233021444335924, 11.62164727934668});
    const std::string lengths = directory_.write("lengths.txt", "3 5");
    std::filesystem::remove_all(directory_ / "run");
    expect_refusal(with_other(command, "target_lengths", lengths), "texts.json: 9 labels; texts of 2 utterances are");
}

TEST_F(SpeechCases, ABlankWithinATextIsRefusedWithItsPosition) {
    const std::string targets = (files_of("blank-in-text") / "targets.npy").string();
    const std::string options = "--direction bwd --frames 60 --batch 1 --input targets=" + targets;
    expect_refusal(run("blank-in-text", options), "label 1 of text 0 is 0, the blank");
    const std::string behind = directory_.write("one.txt", "1");
    const Outcome outcome = kbench(run("blank-in-text", options + " --input target_lengths=" + behind));
    EXPECT_EQ(outcome.exit_code, 0) << "behind a text's end it is padding: " << outcome.err;
    expect_refusal(run("blank-in-text", "--direction bwd --frames 60 --batch 1 --input targets=" +
                                            directory_.write("t.txt", "1 7 2").string()),
                   "label 1 is 7; it should be in [1, 7)");
}

}  // namespace
}  // namespace kbench
