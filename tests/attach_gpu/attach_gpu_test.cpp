// kbench attach on a program of known behaviour: what was planted is found, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "bench/device/device.h"
#include "bench/measure/store/result_files.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;

class Attach : public Program {
  protected:
    void SetUp() override {
        if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
    }
    /// The point of an attached run of the target, and what was printed.
    Point attached(const std::string& mode, const std::string& options = "", int exit_code = 0) {
        return result_of(std::string(KBENCH_ATTACH_TARGET) + " " + mode + " 60", options, exit_code).points.at(0);
    }
    Result result_of(const std::string& command, const std::string& options, int exit_code = 0) {
        const std::string out = (directory_ / "run").string();
        const Outcome outcome = kbench("attach --ceilings none --out " + out + " " + options + " -- " + command);
        EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
        printed_ = outcome.out;
        std::printf("%s\n", printed_.c_str());
        return read_result_file(result_file_in(out)).result;
    }
    std::string printed_;
};

double ms_of_kernels(const Point& point, const std::string& name) {
    double us = 0;
    for (const StepResult& step : point.steps)
        for (const KernelResult& kernel : step.kernels)
            if (kernel.short_name.starts_with(name)) us += kernel.time_us;
    return us / 1e3;
}

void expect_kernels(const Point& point, int kernels = 9) {
    ASSERT_TRUE(point.program);
    EXPECT_EQ(point.program->iterations_unavailable, "");
    EXPECT_EQ(point.program->kernels, kernels);
    EXPECT_NEAR(ms_of_kernels(point, "wait_kernel"), 0.8, 0.03);
}

/// DRAM reads of the step that reads 256 MiB once. Some of them are in L2 from the iteration before.
void expect_bytes(const Point& point) {
    const auto reads = std::ranges::find_if(
        point.steps, [](const StepResult& step) { return step.kernels.at(0).short_name.starts_with("read_kernel"); });
    ASSERT_NE(reads, point.steps.end());
    ASSERT_TRUE(reads->counters.contains("dram_read_bytes")) << point.counters.unavailable;
    EXPECT_LT(reads->counters.at("dram_read_bytes"), 1.05 * (256 << 20));
    EXPECT_GT(reads->counters.at("dram_read_bytes"), 0.5 * (256 << 20));
}

TEST_F(Attach, FindsIterationsTimesAndBytesOfAPlainProgram) {
    const Point point = attached("plain");
    expect_kernels(point);
    expect_bytes(point);
    EXPECT_GT(point.program->bare_ms, 0.8);
    EXPECT_NEAR(point.program->bare_ms / point.program->recorded_ms, 1, 0.03);
    EXPECT_LT(point.program->host_wait_ms, 0.03 * point.program->recorded_ms);
    EXPECT_THAT(printed_, Not(HasSubstr("waits for the host")));
}

/// 45 iterations of 0.9 ms are a block, and six blocks are the fewest.
TEST_F(Attach, RecordsBlocksOfALongerRunInTurn) {
    const Point point = result_of(std::string(KBENCH_ATTACH_TARGET) + " plain 400", "--counters none").points.at(0);
    expect_kernels(point);
    EXPECT_GT(point.end_to_end->latency.samples_ms.size(), 120u);
    EXPECT_LT(point.end_to_end->latency.samples_ms.size(), 260u) << "half of them had records";
    EXPECT_LT(point.activity.runs, 260) << "times are of the recorded blocks";
    EXPECT_NEAR(point.program->bare_ms / point.program->recorded_ms, 1, 0.03);
}

TEST_F(Attach, TellsThatTheGpuWaitsForAHostThatSleeps) {
    const Point point = attached("sleep", "--counters none");
    expect_kernels(point);
    EXPECT_NEAR(point.program->host_wait_ms, 2.1, 0.4);
    EXPECT_THAT(printed_, HasSubstr("the GPU waits for the host"));
}

TEST_F(Attach, TellsCopiesOfPageableMemory) {
    const Point point = attached("copy", "--counters none");
    expect_kernels(point);
    EXPECT_EQ(point.program->copies, 1);
    EXPECT_THAT(printed_, HasSubstr("pageable"));
}

TEST_F(Attach, TimesTheKernelsOfAGraphAndCountsItsLaunches) {
    const Point point = attached("graph");
    expect_kernels(point);
    EXPECT_EQ(point.program->launches, 1);
    EXPECT_NEAR(point.program->bare_ms / point.program->recorded_ms, 1, 0.03);
    EXPECT_EQ(point.counters.passes, 1) << point.counters.unavailable;
}

TEST_F(Attach, CountsTheOthersOfKernelsThatWaitForEachOther) {
    const Point point = attached("collective");
    expect_kernels(point, 11);
    expect_bytes(point);
    EXPECT_EQ(point.counters.unavailable, "");
    EXPECT_EQ(point.counters.passes, 1);
    int waiting = 0;
    for (const StepResult& step : point.steps) {
        if (!step.kernels.at(0).short_name.starts_with("ncclDevKernel_")) continue;
        ++waiting;
        EXPECT_TRUE(step.counters.empty());
        EXPECT_THAT(step.counters_discarded, HasSubstr("waits for other ranks"));
    }
    EXPECT_EQ(waiting, 2);
    EXPECT_THAT(printed_, HasSubstr("Kernels that wait for other ranks take"));
}

/// Counted one after another, the kernel that waits never ends: the watchdog does, after some 20 s.
TEST_F(Attach, EndsACountingThatHangsAndKeepsAllBeforeIt) {
    const Point point = attached("stuck", "", 1);
    expect_kernels(point, 11);
    EXPECT_GT(point.program->bare_ms, 0.8);
    EXPECT_THAT(point.counters.unavailable, HasSubstr("pass 1 of 1 had not ended"));
    EXPECT_THAT(printed_, HasSubstr("had not ended"));
}

TEST_F(Attach, TellsOfEachRank) {
    const std::string target = KBENCH_ATTACH_TARGET;
    const Result result = result_of("sh -c 'RANK=0 " + target + " plain 60 & RANK=1 " + target + " plain 60; wait'",
                                    "--counters none --no-names");
    ASSERT_EQ(result.points.size(), 2u);
    for (std::size_t rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(result.points[rank].axes.count("rank"), static_cast<std::int64_t>(rank));
        EXPECT_EQ(result.points[rank].program->kernels, 9);
    }
    EXPECT_THAT(printed_, HasSubstr("An iteration takes"));
}

}  // namespace
}  // namespace kbench
