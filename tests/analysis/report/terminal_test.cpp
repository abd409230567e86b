// The terminal summary: its layout by golden file, and the promises that a golden file alone would not show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <span>
#include <sstream>

#include "analysis/explain/step_sums.h"
#include "analysis/report/writers.h"
#include "analysis/table/table.h"
#include "models/base/format.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t occurrences(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

Result only(Point point) {
    Result result = example::result();
    result.points = {std::move(point)};
    return result;
}

TEST(Terminal, MatchesTheGoldenFileAt100Columns) {
    expect_golden("terminal_100.txt", write_terminal(example::result(), 100));
}

TEST(Terminal, KeepsWithinTheWidth) {
    for (const std::size_t width : {80, 100, 120, 200}) {
        std::istringstream lines(write_terminal(example::result(), static_cast<int>(width)));
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << line;
    }
}

TEST(Terminal, ShowsKernelsAndCountersOrWhyThereAreNone) {
    Result profiled = example::profiled_result();
    const std::string text = write_terminal(profiled, 120);
    EXPECT_THAT(text, HasSubstr("  kernels       4 recorded in 5 forwards: 3.680 ms and gaps of 0.018 ms"));
    EXPECT_THAT(text, HasSubstr("  counters      core, GH100, 1 pass, 1.28 s\n"));
    EXPECT_THAT(text, HasSubstr("  What the hardware did (DRAM x"));
    EXPECT_THAT(text, HasSubstr("tensor %"));
    EXPECT_THAT(text, HasSubstr("41.5"));
    Point& point = profiled.points[0];
    point.activity = {};
    point.activity.unavailable = point.counters.unavailable = "another profiler holds the counters";
    point.counters.metrics.clear();
    const std::string without = write_terminal(Result{profiled.environment, {}, {point}, {}, {}}, 120);
    EXPECT_THAT(without, HasSubstr("  kernels       unavailable: another profiler holds the counters\n"));
    EXPECT_THAT(without, HasSubstr("  counters      unavailable: another profiler holds the counters\n"));
    EXPECT_THAT(without, Not(HasSubstr("What the hardware did")));
}

TEST(Terminal, GivesTheAnswerAndABreakdownThatAddsUp) {
    Result profiled = example::profiled_result();
    profiled.points.resize(1);
    const std::string text = write_terminal(profiled, 120);
    const std::size_t why = text.find("\n  Why it takes this long\n    gpt2-large at batch 1");
    ASSERT_NE(why, text.npos) << text;
    EXPECT_LT(why, text.find("\n  Where the time goes\n"));
    std::istringstream lines(text.substr(text.find("    time breakdown ", why)));
    std::string line;
    std::getline(lines, line);
    double sum = 0, whole = 0;
    const std::regex row("    (\\S.*?)  +(-?[0-9.]+)  +(-?[0-9.]+)  .*");
    for (std::smatch match; std::getline(lines, line) && std::regex_match(line, match, row);)
        (match[1] == "end to end" ? whole : sum) += std::stod(match[2]);
    EXPECT_NEAR(whole, 3.677, 0.001);
    EXPECT_NEAR(sum, whole, 0.005) << "nine rounded lines";
    EXPECT_THAT(write_terminal(only(example::skipped_point()), 120), Not(HasSubstr("Why it takes")));
}

TEST(Terminal, SaysInOneLineWhyAPointWasSkipped) {
    EXPECT_THAT(
        write_terminal(only(example::skipped_point()), 100),
        HasSubstr(
            "\ngpt2-large batch 1 seq 1024 fp16 cpu: skipped: fp16 needs AVX512_FP16; this CPU has avx512_core_bf16\n"));
}

TEST(Terminal, GivesEachReasonForMissingFiguresOnce) {
    const std::string text = write_terminal(only(example::cpu_point()), 200);
    EXPECT_EQ(occurrences(text, "intel-rapl"), 1u) << text;
    EXPECT_THAT(
        text,
        HasSubstr(
            "power, energy per sequence, energy per token, energy while sampling: unavailable: /sys/class/powercap/intel-rapl cannot be read\n"));
}

TEST(Terminal, MarksEstimates) {
    EXPECT_THAT(write_terminal(only(example::cpu_point()), 200),
                HasSubstr("clock: estimated: scaling_cur_freq of the pinned CPUs"));
}

TEST(Terminal, SaysWhenTheIntervalDidNotConverge) {
    EXPECT_THAT(write_terminal(only(example::cpu_point()), 100), HasSubstr("Not converged"));
    Point point = example::cpu_point();
    point.end_to_end->converged = true;
    EXPECT_THAT(write_terminal(only(point), 100), Not(HasSubstr("Not converged")));
}

TEST(Terminal, ShowsNoIntervalOfTooFewSamples) {
    const auto intervals = [](std::size_t n) {
        Point point = example::cpu_point();
        point.end_to_end->latency = example::timing(40, n);
        Result sweep = only(point);
        sweep.points.push_back(point);
        return occurrences(write_terminal(sweep, 200), "[");
    };
    EXPECT_EQ(intervals(12), intervals(9) + 4) << "each point's own, and its row of the sweep's table";
}

TEST(Terminal, ShowsTheDifferenceBetweenTheSumOfStepsAndTheWhole) {
    Point point = example::cpu_point();
    point.steps.resize(2);
    point.steps[0].time_us = summarise(std::vector<double>(6, 700.0));
    point.steps[1].time_us = summarise(std::vector<double>(6, 500.0));
    point.end_to_end->latency.summary_ms = summarise(std::vector<double>(6, 1.0));
    EXPECT_THAT(
        write_terminal(only(point), 200),
        HasSubstr(
            "Steps measured one by one sum to 1.200 ms, 120.0 % of the forward pass's median of 1.000 ms: 0.200 ms more"));
}

TEST(Terminal, CountsStepsWithoutATime) {
    Point point = example::cpu_point();
    point.steps.resize(5);
    point.steps[3].time_us.reset();
    EXPECT_THAT(write_terminal(only(point), 100), HasSubstr("1 of 5 steps have no time"));
}

TEST(Terminal, NamesEveryStepThatFailedVerification) {
    Point point = example::gpu_point(1, {"cublaslt", "flash", 1, 1, 1, 1, 1, 1, 1}, 1);
    point.status = PointStatus::failed;
    point.reason = "attention is wrong";
    point.verification.steps[1].worst_error = std::numeric_limits<double>::quiet_NaN();
    point.verification.steps[1].error_over_bound = std::numeric_limits<double>::quiet_NaN();
    const std::string text = write_terminal(only(point), 200);
    EXPECT_THAT(text, HasSubstr("failed: attention is wrong"));
    EXPECT_THAT(text, HasSubstr("WRONG         attention b1h20s1024d64 by native (flash): error nan"));
    EXPECT_THAT(text, Not(HasSubstr("WRONG         gemm")));
}

TEST(Terminal, ComparesPointsOnlyWhenASweepFinishedMoreThanOne) {
    EXPECT_THAT(write_terminal(example::result(), 100), HasSubstr("All points of gpt2-large"));
    EXPECT_THAT(write_terminal(only(example::cpu_point()), 100), Not(HasSubstr("All points of gpt2-large")));
}

TEST(Terminal, LetsNoControlCharacterThrough) {
    Result result = only(example::skipped_point());
    result.points[0].reason = "line one\nline two\x1b[31m";
    result.warnings = {"bell\a"};
    const std::string text = write_terminal(result, 100);
    EXPECT_THAT(text, HasSubstr("line one line two"));
    EXPECT_FALSE(std::regex_search(text, std::regex("[\x01-\x09\x0b-\x1f]")));
}

TEST(Terminal, SurvivesAResultWithoutAnything) {
    Result result;
    result.points.resize(2);
    for (Point& point : result.points) point.status = PointStatus::done;
    result.points[1].end_to_end.emplace();
    EXPECT_THAT(write_terminal(result, 0), Not(HasSubstr("nan")));
}

TEST(StepSums, SumsTheLayersOfAllBlocks) {
    const StepSums sums = by_layer(example::gpu_point(1, {"cublaslt", "flash", 10, 9, 8, 7, 6, 5, 4}, 1));
    ASSERT_FALSE(sums.groups.empty());
    const StepGroup& slowest = sums.groups.front();
    EXPECT_EQ(slowest.name, "h.*.attn.c_proj");  // its gemm and its layernorm: 8 + 5 of a block's 50
    EXPECT_EQ(slowest.steps, 72u);
    EXPECT_THAT(slowest.ops, testing::ElementsAre("gemm", "layernorm", "bias", "residual"));
    double share = 0, time_us = 0;
    for (const StepGroup& group : sums.groups) share += group.share, time_us += group.time_us;
    EXPECT_NEAR(share, 1, 1e-12);
    EXPECT_NEAR(time_us, sums.time_us, 1e-9);
}

TEST(StepSums, KeepsProvidersOfOneOpKindApart) {
    Point point = example::cpu_point();
    point.steps.resize(10);
    for (StepResult& step : point.steps) step.op = "gemm";
    point.steps[9].provider = "blas";
    for (StepResult& step : std::span(point.steps).first(9)) step.provider = "onednn";
    const StepSums sums = by_op_kind(point);
    ASSERT_EQ(sums.groups.size(), 2u);
    EXPECT_EQ(sums.groups[0].steps, 9u);
    EXPECT_EQ(sums.groups[1].providers, std::vector<std::string>{"blas"});
}

TEST(Format, PicksTheUnitThatReadsBest) {
    EXPECT_EQ(format_flop(1.68e12), "1.68 TFLOP");
    EXPECT_EQ(format_flop_per_s(3.99e14), "399 TFLOP/s");
    EXPECT_EQ(format_bytes(1.548e9), "1.55 GB");
    EXPECT_EQ(format_bytes(999.6e6), "1.00 GB");
    EXPECT_EQ(format_bytes(999.4e6), "999 MB");
    EXPECT_EQ(format_bytes_per_s(4.142e12), "4,142 GB/s");
    EXPECT_EQ(format_bytes(49152), "49.2 kB");
    EXPECT_EQ(format_joules(0.0019), "1.90 mJ");
    EXPECT_EQ(format_seconds(2.31), "2.31 s");
    EXPECT_EQ(format_seconds(0), "0 s");
    EXPECT_EQ(significant(243187.4), "243,187");
    EXPECT_EQ(significant(-1234567.0), "-1,234,567");
    EXPECT_EQ(significant(0.00421), "0.00421");
    EXPECT_EQ(significant(std::numeric_limits<double>::infinity()), "not finite");
}

TEST(Table, DropsColumnsThenShortensThoseThatMayBe) {
    Table table({{"a", Align::left}, {"b", Align::right, 1}, {"c", Align::left, 0, true}});
    table.add_row({"one", "22", "sm90_gemm_f16_tile128x128"});
    EXPECT_EQ(table.text(0, 40), "a     b  c\none  22  sm90_gemm_f16_tile128x128\n");
    EXPECT_EQ(table.text(0, 20), "a     b  c\none  22  sm90_..x128\n");
    EXPECT_EQ(table.text(0, 14), "a    c\none  sm90..128\n");
}

TEST(Table, ShortensTheWidestColumnFirstAndSaysHowNarrowItCanBe) {
    Table table({{"a", Align::left, 0, true}, {"n"}, {"c", Align::left, 0, true}});
    table.add_row({"0123456789abcdef", "1234567890123", "0123456789"});
    EXPECT_EQ(table.text(0, 40), "a                          n  c\n012345..bcdef  1234567890123  0123456789\n");
    EXPECT_EQ(table.text(0, table.narrowest()), "a                     n  c\n012..def  1234567890123  012..789\n");
    EXPECT_EQ(table.narrowest(), 8u + 2 + 13 + 2 + 8);
}

TEST(Table, WrapsWithoutPartingNumbersFromUnits) {
    EXPECT_EQ(wrap("size ", "weights 1.55 GB, logits 103 MB", 20), "size weights\n     1.55 GB, logits\n     103 MB\n");
}

TEST(Table, LeavesOutEmptyColumns) {
    Table table({{"a"}, {"empty"}, {"c"}});
    table.add_row({"1", "", "3"});
    EXPECT_EQ(table.text(2, 80), "  a  c\n  1  3\n");
}

}  // namespace
}  // namespace kbench
