// The command line of `kbench train`.
#include "bench/command/training/train_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/bench/refusal.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

TrainRequest parsed(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--model", "gpt2"});
    return parse_train(arguments).request;
}
std::string refusal(std::vector<std::string> arguments) {
    return refusal_of([&] { parsed(arguments); });
}

TEST(TrainOptions, Fp16ScalesItsLossDynamicallyAndNoOther) {
    const TrainRequest fp16 = parsed({"--precision", "fp16"}), bf16 = parsed({"--precision", "bf16"});
    EXPECT_EQ(fp16.train.loss_scale, 65536);
    EXPECT_TRUE(fp16.train.dynamic_scale);
    EXPECT_EQ(bf16.train.loss_scale, 1);
    EXPECT_FALSE(bf16.train.dynamic_scale);
    EXPECT_EQ(parsed({"--precision", "fp16", "--loss-scale", "1024"}).train.loss_scale, 1024);
}

TEST(TrainOptions, AStepIsOfOneBatchUnlessSeveralAreAskedFor) {
    EXPECT_EQ(parsed({}).train.micro_batches, 1);
    EXPECT_EQ(parsed({"--accumulate", "4"}).train.micro_batches, 4);
    EXPECT_THAT(refusal({"--accumulate", "0"}), HasSubstr("--accumulate '0'"));
    EXPECT_EQ(parsed({"--warmup", "4"}).train.warmup, 4);
    EXPECT_THAT(refusal({"--warmup", "-1"}), HasSubstr("--warmup '-1'"));
}

TEST(TrainOptions, MasterWeightsAreOf16Bits) {
    EXPECT_TRUE(parsed({"--precision", "bf16"}).master);
    EXPECT_FALSE(parsed({"--precision", "bf16", "--master", "none"}).master);
    EXPECT_FALSE(parsed({"--precision", "fp32"}).master);
}

TEST(TrainOptions, RecomputeIsAskedFor) {
    EXPECT_FALSE(parsed({}).recompute);
    EXPECT_TRUE(parsed({"--recompute", "block"}).recompute);
    EXPECT_FALSE(parsed({"--recompute", "none"}).recompute);
    EXPECT_THAT(refusal({"--recompute", "all"}), HasSubstr("none, block"));
}

TEST(TrainOptions, MistakesSayWhatWouldBeRight) {
    EXPECT_THAT(refusal({"--steps", "0"}), HasSubstr("--steps '0': must be a whole number of at least 1"));
    EXPECT_THAT(refusal({"--seq", "1"}), HasSubstr("the last token has no next one, of at least 2"));
    EXPECT_THAT(refusal({"--precision", "int8"}), HasSubstr("must be one of fp16, bf16, tf32, fp32, fp64"));
    EXPECT_THAT(refusal({"--lr", "-1"}), HasSubstr("--lr '-1': must be a number of at least 0"));
    for (const char* scale : {"0", "1e-50", "1e50"})
        EXPECT_THAT(refusal({"--loss-scale", scale}), HasSubstr("it and its inverse must be fp32 numbers"));
    EXPECT_THAT(refusal({"--master", "fp64"}), HasSubstr("none, fp32"));
    EXPECT_THAT(refusal({"--frobnicate"}), HasSubstr("--frobnicate"));
    EXPECT_THAT(refusal_of([] { parse_train({}); }), HasSubstr("--model is missing"));
    TemporaryDirectory directory;
    EXPECT_THAT(refusal({"--save", (directory / "none/w.safetensors").string()}), HasSubstr("none is no directory"));
    EXPECT_THAT(refusal({"--save", (directory / "").string()}), HasSubstr("is a directory"));
    EXPECT_THAT(refusal({"--save", ""}), HasSubstr("must name a file"));
}

TEST(TrainOptions, TheReferenceInDocsIsTheTable) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/training.md");
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(train_options_markdown())) << "the table in docs/training.md must be:\n"
                                                                 << train_options_markdown();
}

}  // namespace
}  // namespace kbench
