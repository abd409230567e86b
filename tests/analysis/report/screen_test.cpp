// The answer on one screen: its layout by golden files, and that it is one screen.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "analysis/report/writers.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr std::ptrdiff_t most_lines = 40;

std::vector<std::string> text_lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

Result profiled_only(Point point) {
    Result result = example::profiled_result();
    result.points = {std::move(point)};
    return result;
}

TEST(Screen, MatchesTheGoldenFileAt60And80And100Columns) {
    for (const int width : {60, 80, 100})
        expect_golden(fmt::format("screen_{}.txt", width),
                      write_screen(profiled_only(example::profiled_result().points[0]), width));
    expect_golden("screen_cpu_80.txt", write_screen(profiled_only(example::cpu_point()), 80));
}

/// Whole runs: with every counter at the power limit, and on a CPU whose host others used. The example above has no
/// counters.
TEST(Screen, OfCommittedRunsMatchesTheGoldenFilesAt60And80And100Columns) {
    for (const auto& [name, file] : {std::pair("counters", "h100-2026-11-27/causes/gpt2-large-fp16-b1.json.gz"),
                                     std::pair("busy_cpu", "xeon-2026-11-28/gpt2-large-fp32.json.gz")}) {
        const Result result = example::committed_result(file);
        for (const int width : {60, 80, 100})
            expect_golden(fmt::format("screen_{}_{}.txt", name, width), write_screen(result, width));
    }
}

TEST(Screen, OfACommittedRunIsOneScreen) {
    for (const char* name : {"h100-2026-11-27/causes/gpt2-large-fp16-b1.json.gz",
                             "h100-2026-11-27/causes/deepspeech2-fp16-fwd-b1.json.gz"}) {
        const Result result = example::committed_result(name);
        for (const std::size_t width : {80, 100}) {
            const std::vector<std::string> lines = text_lines(write_screen(result, static_cast<int>(width)));
            const auto warning =
                std::ranges::find_if(lines, [](const auto& line) { return line.starts_with("warning:"); });
            EXPECT_LE(warning - lines.begin(), most_lines) << name << " at " << width;
            for (const std::string& line : lines) EXPECT_LE(line.size(), width) << line;
        }
    }
}

/// Others used that host: its peak was lower between the samples than when it was measured.
TEST(Screen, OfABusyHostHasTheShareOfItsPeakDuringTheRun) {
    EXPECT_THAT(write_screen(example::committed_result("xeon-2026-11-28/gpt2-large-fp32.json.gz"), 100),
                HasSubstr("63 % of the measured peak, 82 % of what it was during the run"));
}

TEST(Screen, HasTheAnswerAndWhatAReaderDecidesBy) {
    const std::string text =
        write_screen(example::committed_result("h100-2026-11-27/causes/gpt2-large-fp16-b1.json.gz"), 100);
    for (const char* part : {"NVIDIA H100",
                             "gpt2-large fwd, batch 1",
                             "latency ",
                             "throughput ",
                             "compute ",
                             " % of the measured peak, ",
                             " % of the datasheet's",
                             " J per sequence",
                             "at the power limit",
                             "verified ",
                             "Bandwidth-bound? NO: DRAM traffic (measured) would take",
                             "What binds it compute-bound (fp16_tensor) in steps with",
                             "Other hardware? a faster unit",
                             "Where the time goes",
                             "useful work",
                             "at its roof, at the highest clock",
                             "#####",
                             "What would save most on this machine, each at most:",
                             "of fixed time: fewer, larger kernels",
                             "h.*.attn and h.*.mlp.c_fc",
                             "gain, ms",
                             "occ %, of max",
                             "14.2 of 18.8",
                             "h.*.mlp.c_fc",
                             "6 more ",
                             "--verbose"})
        EXPECT_THAT(text, HasSubstr(part));
}

TEST(Screen, AClockReadABitTooHighIsTheHighest) {
    Result result = example::committed_result("h100-2026-11-27/causes/gpt2-large-fp16-b1.json.gz");
    const auto at = [&result](double mhz) {
        for (double& step : result.points[0].graph_clock->step_mhz) step = mhz;
        return write_screen(result, 100);
    };
    EXPECT_THAT(at(1993), HasSubstr("SM clock 1,980 of 1,980 MHz"));
    EXPECT_THAT(at(1970), HasSubstr("SM clock 1,970 of 1,980 MHz"));
    EXPECT_THAT(at(2100), HasSubstr("SM clock 2,100 of 1,980 MHz")) << "that is no error of reading";
}

TEST(Screen, AChangeNamesTheLayersThatHaveHalfOfIt) {
    const std::string text =
        write_screen(example::committed_result("h100-2026-11-27/causes/deepspeech2-fp16-fwd-b32.json.gz"), 100);
    EXPECT_THAT(text, HasSubstr("of main loop: other tiles or a deeper pipeline; most in rnns.*.rnn\n"));
    Result even = example::committed_result("h100-2026-11-27/causes/gpt2-large-fp16-b1.json.gz");
    int step = 0;
    for (StepResult& one : even.points[0].steps) one.layer = fmt::format("layer{}", "abcdefgh"[step++ % 8]);
    EXPECT_THAT(write_screen(even, 100), Not(HasSubstr("most in"))) << "no two of eight have half";
}

TEST(Screen, ASweepHasARowAPointAndNoMore) {
    Result result = example::profiled_result();
    Point other = result.points[0];
    other.set("batch", std::int64_t{2});
    result.points = {result.points[0], other};
    const std::string text = write_screen(result, 100);
    EXPECT_THAT(text, HasSubstr("bandwidth?"));
    for (const std::string& line : text_lines(write_screen(result, 80))) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_THAT(text, Not(HasSubstr("WRONG")));
    result.points[1].verification.steps.at(0).error_over_bound = 2;
    EXPECT_THAT(write_screen(result, 100), HasSubstr("done, WRONG"));
    result.points[0].end_to_end->converged = false;
    EXPECT_THAT(write_screen(result, 100), HasSubstr("done, not converged"));
    EXPECT_THAT(text, Not(HasSubstr("Where the time goes")));
    EXPECT_THAT(text, Not(HasSubstr("gain, ms")));
}

TEST(Screen, AWrongStepAndAnUncheckedOneAreSaid) {
    Point point = example::profiled_result().points[0];
    point.verification.enabled = true;
    ASSERT_FALSE(point.verification.steps.empty());
    EXPECT_THAT(write_screen(profiled_only(point), 100), HasSubstr("reference, all within their bounds"));
    point.verification.steps[0].error_over_bound = 2;
    EXPECT_THAT(write_screen(profiled_only(point), 100), HasSubstr("reference, NOT all within their bounds"));
    point.verification.enabled = false;
    EXPECT_THAT(write_screen(profiled_only(point), 100), HasSubstr("verified      no: turned off"));
}

TEST(Screen, NamesTheDeviceOfEachBackendThatWasMeasured) {
    Result result = example::profiled_result();
    result.points = {result.points[0], example::cpu_point()};
    const std::string both = write_screen(result, 100);
    EXPECT_THAT(both, HasSubstr("NVIDIA H200"));
    EXPECT_THAT(both, HasSubstr("XEON"));
    EXPECT_THAT(write_screen(profiled_only(example::profiled_result().points[0]), 100), Not(HasSubstr("XEON")));
}

TEST(Screen, WithoutTimesAtOtherSizesNoChangeIsTheLargest) {
    const Result result = example::committed_result("h200-2026-11-23/fp16/result.json.gz");
    const std::string text = write_screen(result, 100);
    EXPECT_THAT(text, Not(HasSubstr("would give")));
    EXPECT_THAT(text, HasSubstr("in no step"));
}

/// Steps that others slowed down add up to several times the latency: shares of it would be hundreds of per cent.
TEST(Screen, StepsThatMissTheLatencyAreSharesOfTheirOwnSum) {
    Result result = example::committed_result("h200-2026-11-23/fp16/result.json.gz");
    result.points[0].end_to_end->latency.summary_ms.median /= 4;
    const std::string text = write_screen(result, 100);
    EXPECT_THAT(text, HasSubstr("Where the steps' time goes"));
    EXPECT_THAT(text, Not(HasSubstr("in no step")));
    const std::string all = text.substr(text.find("Where the steps' time goes"));
    EXPECT_THAT(all.substr(0, all.find("\n\n")), Not(ContainsRegex("[1-9][0-9][0-9]\\.[0-9] ")));
}

TEST(Screen, WhatWasNotMeasuredHasItsReason) {
    EXPECT_THAT(write_screen(profiled_only(example::skipped_point()), 100), HasSubstr("skipped: "));
    EXPECT_THAT(write_screen(profiled_only(example::skipped_point()), 100), Not(HasSubstr("Bandwidth-bound?")));
}

}  // namespace
}  // namespace kbench
