// Which code of a build runs on a GPU, by nvcc's rules.
#include "bench/device/gpu_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kbench {
namespace {

using testing::HasSubstr;

constexpr std::string_view usual = "80-real,90-real,90-virtual";

std::string runs(std::string_view architectures, int major, int minor) {
    const std::optional<GpuCode> code = code_for(architectures, major, minor);
    return code ? code->text() : "nothing";
}

TEST(GpuCode, OfTheUsualBuildRunsOnEveryGpuSinceAmpere) {
    EXPECT_EQ(runs(usual, 8, 0), "SASS of sm_80");
    EXPECT_EQ(runs(usual, 8, 6), "SASS of sm_80");  // RTX 3090
    EXPECT_EQ(runs(usual, 8, 9), "SASS of sm_80");  // RTX 4090
    EXPECT_EQ(runs(usual, 9, 0), "SASS of sm_90");
    EXPECT_EQ(runs(usual, 10, 0), "PTX of compute_90");
    EXPECT_EQ(runs(usual, 12, 0), "PTX of compute_90");  // RTX 5090
    EXPECT_EQ(runs(usual, 7, 5), "nothing");
}

TEST(GpuCode, OfOneGpuRunsThereAlone) {
    EXPECT_EQ(runs("90a-real", 9, 0), "SASS of sm_90a");
    EXPECT_EQ(runs("90a-real", 8, 9), "nothing");
    EXPECT_EQ(runs("90a-real", 10, 0), "nothing");
    EXPECT_EQ(runs("90a", 12, 0), "nothing");  // its PTX has a letter, too
    EXPECT_EQ(runs("89-real", 8, 6), "nothing");
    EXPECT_EQ(runs("89-real", 8, 0), "nothing");
    EXPECT_EQ(runs("86", 8, 9), "SASS of sm_86");
    EXPECT_EQ(runs("86", 12, 0), "PTX of compute_86");
    EXPECT_EQ(runs("100f-real", 10, 3), "SASS of sm_100f");
    EXPECT_EQ(runs("100f-real", 12, 0), "nothing");
}

TEST(GpuCode, IsTheNewestThatRuns) {
    EXPECT_EQ(runs("80;86;90", 8, 9), "SASS of sm_86");
    EXPECT_EQ(runs("80-virtual;90-real;90-virtual", 9, 0), "SASS of sm_90");
    EXPECT_EQ(runs("80-virtual;90-real;90-virtual", 8, 9), "PTX of compute_80");
    EXPECT_EQ(runs("90-real;90a-real", 9, 0), "SASS of sm_90a");
    EXPECT_EQ(runs("", 9, 0), "nothing");
    EXPECT_EQ(runs("native", 9, 0), "nothing");  // CMake writes what it stands for
}

TEST(GpuCode, IsListedAsNvccCallsIt) {
    EXPECT_EQ(code_text(usual), "sm_80, sm_90 and PTX of compute_90");
    EXPECT_EQ(code_text("90a-real"), "sm_90a");
    EXPECT_EQ(code_text(""), "no GPU");
}

TEST(GpuCode, ThatLacksIsSaidInOneLineWithWhatHelps) {
    EXPECT_EQ(why_no_code(usual, "NVIDIA GeForce RTX 4090", 8, 9), "");
    EXPECT_EQ(why_no_code("", "NVIDIA GeForce RTX 4090", 8, 9), "");
    EXPECT_EQ(
        why_no_code("90a-real", "NVIDIA A100", 8, 0),
        "NVIDIA A100 has compute capability 8.0, and this kbench was built for sm_90a: build it again on this machine, or with -DCMAKE_CUDA_ARCHITECTURES=80");
    for (const auto& [name, major, minor] :
         {std::tuple("Tesla V100", 7, 0), {"Tesla T4", 7, 5}, {"Tesla P100", 6, 0}}) {
        EXPECT_THAT(why_no_code(usual, name, major, minor), HasSubstr("need 8.0 (Ampere) or newer"));
        EXPECT_THAT(why_no_code("60;70;75", name, major, minor), HasSubstr("need 8.0 (Ampere) or newer"));
    }
}

TEST(GpuCode, OfAnAssumedCapabilityIsWhatTheGpuWouldRun) {
    EXPECT_EQ(why_not_assumed("80-virtual", 9, 0, 8, 0), "");
    for (const std::string_view newer : {usual, std::string_view("80-real"), std::string_view("80-virtual;90-virtual")})
        EXPECT_THAT(why_not_assumed(newer, 9, 0, 8, 0), HasSubstr("in a build for 80-virtual alone; this one has"));
    EXPECT_NE(why_not_assumed("80-virtual", 9, 0, 8, 6), "");
}

}  // namespace
}  // namespace kbench
