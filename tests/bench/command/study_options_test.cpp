// The options of `kbench study`.
#include "bench/command/study/study_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kbench/error.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StudyRequest parsed(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--model", "gpt2"});
    return parse_study(arguments).request;
}

std::string refusal(const std::vector<std::string>& arguments) {
    try {
        parsed(arguments);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(StudyOptions, HaveABudgetOfTenMinutesUnlessToldOtherwise) {
    EXPECT_EQ(parsed({}).budget_s, 600);
    EXPECT_EQ(parsed({"--budget", "8m"}).budget_s, 480);
    EXPECT_EQ(parsed({"--budget", "1.5h"}).budget_s, 5400);
    EXPECT_EQ(parsed({"--budget", "90s"}).budget_s, 90);
    EXPECT_EQ(parsed({"--budget", "90"}).budget_s, 90);
    EXPECT_EQ(parsed({"--budget", "none"}).budget_s, std::nullopt);
}

TEST(StudyOptions, RefuseABudgetThatIsNoTime) {
    for (const char* wrong : {"", "m", "-5m", "0", "inf", "nan", "8 minutes", "1e400"})
        EXPECT_THAT(refusal({"--budget", wrong}),
                    HasSubstr("must be a time of at least 1s, such as 31ms, 1.5s, 8m or 10 for seconds, or none"))
            << wrong;
}

TEST(StudyOptions, TakeOneValueWhereNothingIsVaried) {
    EXPECT_THAT(refusal({"--batch", "1,2"}), HasSubstr("--batches takes a list"));
    EXPECT_THAT(refusal({"--precision", "fp16,fp32"}), HasSubstr("--precisions takes a list"));
    EXPECT_THAT(refusal({"--seq", "128,256"}), HasSubstr("a study has one value"));
}

TEST(StudyOptions, TakeLists) {
    const StudyRequest request = parsed({"--batches", "1,8,max,8", "--precisions", "fp32,bf16"});
    EXPECT_THAT(request.batches, ElementsAre(1, 8, max_batch));
    EXPECT_THAT(request.precisions, ElementsAre(Precision::fp32, Precision::bf16));
}

TEST(StudyOptions, RefuseWhatIsOfOnePointAlone) {
    EXPECT_THAT(refusal({"--dump-logits", "x.npy"}), HasSubstr("--dump-logits"));
    EXPECT_THAT(refusal({"--direction", "fwd"}), HasSubstr("--direction"));
}

TEST(StudyOptions, DefaultsAreTheDevices) {
    StudyRequest request = parsed({});
    const StudyBase gpu = study_base(request, true);
    EXPECT_EQ(gpu.batch, 8);
    EXPECT_EQ(gpu.precision, Precision::bf16);
    EXPECT_FALSE(request.run.values.contains("seq"));
    const StudyBase cpu = study_base(request, false);
    EXPECT_EQ(cpu.batch, 1);
    EXPECT_EQ(cpu.precision, Precision::fp32);
    EXPECT_EQ(request.run.values["seq"], std::vector<AxisValue>{128});
}

TEST(StudyOptions, ACpuTakesTheLengthThatWasAskedFor) {
    StudyRequest request = parsed({"--seq", "512"});
    study_base(request, false);
    EXPECT_EQ(request.run.values["seq"], std::vector<AxisValue>{512});
}

TEST(StudyOptions, TheReferenceInDocsIsTheTable) {
    std::stringstream text;
    text << std::ifstream(KBENCH_SOURCE_DIR "/docs/study.md").rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(study_options_markdown())) << "the table in docs/study.md must be:\n"
                                                                 << study_options_markdown();
}

}  // namespace
}  // namespace kbench
