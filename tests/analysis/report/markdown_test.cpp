// report.md: its layout by golden file, and that what names hold stays text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

#include "analysis/report/markdown_text.h"
#include "analysis/report/writers.h"
#include "models/base/format.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Result one_point() {
    Result result = example::profiled_result();
    result.points.resize(1);
    return result;
}

std::size_t unescaped_bars(const std::string& line) {
    std::size_t bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    return bars;
}

/// Every table's rows have as many cells as its header, and a rule below it.
void expect_whole_tables(const std::string& text) {
    std::istringstream lines(text);
    std::size_t header = 0, row = 0;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with('|')) {
            header = row = 0;
            continue;
        }
        if (++row == 1) header = unescaped_bars(line);
        EXPECT_TRUE(row != 2 || line.find_first_not_of("|-:") == line.npos) << line;
        EXPECT_EQ(unescaped_bars(line), header) << line;
    }
}

TEST(Markdown, OfOnePointMatchesTheGoldenFile) { expect_golden("report.md", write_markdown(one_point())); }

TEST(Markdown, OfASweepMatchesTheGoldenFile) {
    const std::string text = write_markdown(example::profiled_result());
    expect_golden("report_sweep.md", text);
    EXPECT_LT(text.find("## All points"), text.find("## gpt2-large, batch 1"));
}

TEST(Markdown, OfAPointWithoutStepsNothingAddsUpToNothing) {
    const auto row_of = [](bool timed) {
        Result sweep = one_point();
        if (!timed) sweep.points[0].steps.clear();
        sweep.points.push_back(sweep.points[0]);
        const std::string text = write_markdown(sweep);
        const std::size_t row = text.find("| done |", text.find("## All points"));
        const std::size_t begin = text.rfind('\n', row) + 1;
        return text.substr(begin, row - begin);
    };
    // Roof time and residual are left out: their columns, where no point has them.
    EXPECT_EQ(std::ranges::count(row_of(true), '|') - std::ranges::count(row_of(false), '|'), 2) << row_of(false);
    EXPECT_THAT(row_of(false), Not(HasSubstr("100.00")));
}

TEST(Markdown, ShowsNoIntervalOfTooFewSamples) {
    const auto with_samples = [](std::size_t n) {
        Result sweep = one_point();
        EndToEnd& times = *sweep.points[0].end_to_end;
        times.latency = example::timing(40, n);
        times.stream = times.enqueue = times.host_to_device = times.device_to_host = std::nullopt;
        sweep.points.push_back(sweep.points[0]);
        return write_markdown(sweep);
    };
    constexpr std::string_view figure = "measured, median of 12 samples, 11 independent, 95 % interval ",
                               column = "| median ms | 95 % interval |";
    EXPECT_THAT(with_samples(12), AllOf(HasSubstr(figure), HasSubstr(column)));
    EXPECT_THAT(with_samples(9), AllOf(Not(HasSubstr(figure)), Not(HasSubstr(column)), HasSubstr("median of 9")));
}

TEST(Markdown, HostLatencyAddsTheCopiesWhereThereAreSome) {
    Result result = one_point();
    EndToEnd& times = *result.points[0].end_to_end;
    times.latency = example::timing(40, 12);
    times.host_to_device = example::timing(0.5, 12);
    times.device_to_host = example::timing(2, 12);
    const double all = times.latency.summary_ms.median + times.host_to_device->summary_ms.median +
                       times.device_to_host->summary_ms.median;
    EXPECT_THAT(write_markdown(result), HasSubstr("| host latency | " + format_ms(all) + ", with H2D and D2H |"));
    times.device_to_host.reset();
    EXPECT_THAT(write_markdown(result), Not(HasSubstr("host latency")));
}

TEST(Markdown, LeastBytesStandBesideStreamingBytesWhereTheResultHasThem) {
    Result result = one_point();
    result.points[0].compulsory_bytes = 1.25e9;
    EXPECT_THAT(write_markdown(result), AllOf(HasSubstr("| unfused traffic of its steps | 4.31 GB, "),
                                              HasSubstr("| compulsory traffic of the model | 1.25 GB, ")));
    result.points[0].compulsory_bytes.reset();
    EXPECT_THAT(write_markdown(result),
                AllOf(HasSubstr("| unfused traffic of its steps | 4.31 GB, "), Not(HasSubstr("compulsory traffic"))));
}

TEST(Markdown, TablesAreWhole) {
    expect_whole_tables(write_markdown(one_point()));
    expect_whole_tables(write_markdown(example::result()));
}

TEST(Markdown, HasEverySection) {
    const std::string text = write_markdown(one_point());
    for (const char* section :
         {"# gpt2-large on NVIDIA H200\n", "## Why it takes this long\n", "## Key figures\n", "## Time breakdown\n",
          "## By layer", "## By op kind\n", "## Marginal cost\n", "## Which bytes cost which milliseconds\n",
          "## Verdicts\n", "## Occupancy\n", "## Conditions of the timing run\n", "## Warnings\n", "## Ceilings\n",
          "## Environment\n"})
        EXPECT_THAT(text, HasSubstr(section)) << section;
}

TEST(Markdown, BeginsWithTheAnswerAndOccupancyIsSecond) {
    const std::string text =
        write_markdown(example::committed_result("h100-2026-11-27/causes/gpt2-large-fp16-b1.json.gz"));
    std::size_t last = 0;
    for (const char* part : {"## Why it takes this long\n", "Bandwidth-bound? NO: DRAM traffic (measured) would take",
                             "What binds it: compute-bound (fp16\\_tensor) in steps with 69 %", "4.125 ms",
                             "at most 2.24 ms", "of fixed time: fewer, larger kernels", "In sentences",
                             "## Occupancy\n", "## Where the time goes, by cause\n", "## Verdicts\n"}) {
        const std::size_t at = text.find(part);
        ASSERT_NE(at, text.npos) << part;
        EXPECT_GT(at, last) << part;
        last = at;
    }
}

TEST(Markdown, UnavailableFiguresSayWhy) {
    const std::string text = write_markdown(example::result());
    EXPECT_THAT(
        text,
        HasSubstr(
            "| energy per sequence | unavailable | unavailable: /sys/class/powercap/intel-rapl cannot be read |"));
    EXPECT_THAT(text, HasSubstr("\nskipped: fp16 needs AVX512\\_FP16; this CPU has avx512\\_core\\_bf16.\n"));
    EXPECT_THAT(text, HasSubstr("## Ceilings\n\nUnavailable: the result has none.\n"));
}

TEST(Markdown, OfACommittedResultSaysHowMuchOfEachTimeIsExplained) {
    const Result result = example::committed_result("h200-2026-11-21/executed/result.json.gz");
    const std::string text = write_markdown(result);
    expect_whole_tables(text);
    std::size_t closings = 0;
    for (std::size_t at = 0; (at = text.find("The lines always add up", at)) != text.npos; ++at) ++closings;
    EXPECT_EQ(closings, result.points.size());
}

TEST(MarkdownText, StaysText) {
    EXPECT_EQ(markdown_text("a|b"), "a&#124;b");
    EXPECT_EQ(markdown_text("<script>alert(1)</script>"), "&#60;script>alert(1)&#60;/script>");
    EXPECT_EQ(markdown_text("**b** _i_ `c` [l](u) ~s~ #1 !x"),
              "\\*\\*b\\*\\* \\_i\\_ \\`c\\` \\[l\\](u) \\~s\\~ \\#1 \\!x");
    EXPECT_EQ(markdown_text("\\|"), "&#92;&#124;");
    EXPECT_EQ(markdown_text("&lt;"), "&#38;lt;");
    EXPECT_EQ(markdown_text("a\n\n# b\tc"), "a  \\# b c");
    EXPECT_EQ(markdown_text("  - item"), "\\- item");
    EXPECT_EQ(markdown_text("1. item"), "1\\. item");
    EXPECT_EQ(markdown_text("1.5 ms"), "1.5 ms");
    EXPECT_EQ(markdown_text("===="), "\\====");
    EXPECT_EQ(markdown_text("> a -> b"), "\\> a -> b");
    EXPECT_EQ(markdown_text("@octocat"), "@&#8203;octocat");
    EXPECT_EQ(markdown_text("http://x www.x"), "http&#58;//x www&#46;x");
    EXPECT_EQ(markdown_text("µs, 95 %"), "µs, 95 %");
    EXPECT_EQ(markdown_text(""), "");
}

TEST(MarkdownText, NamesAreCodeUnlessTheyCouldEndIt) {
    EXPECT_EQ(markdown_name("h.*.attn.c_attn"), "`h.*.attn.c_attn`");
    EXPECT_EQ(markdown_name("flash<float, 64>"), "`flash<float, 64>`");
    EXPECT_EQ(markdown_name("a`b"), "a\\`b");
    EXPECT_EQ(markdown_name("a|b"), "a&#124;b");
    EXPECT_EQ(markdown_name("a\\"), "a&#92;");
    EXPECT_EQ(markdown_name("a\nb"), "`a b`");
    EXPECT_EQ(markdown_name(" "), "");
}

TEST(Markdown, SaysHowTheClockMovedWhileSamplesWereTaken) {
    Result result = example::profiled_result();
    result.points.resize(1);
    Conditions& conditions = result.points[0].conditions;
    conditions.blocks.clear();
    for (int b = 0; b < 16; ++b)
        conditions.blocks.push_back({0.1 * (b + 1), 7020.0 / (1650 + 7 * b), 1650.0 + 7 * b, 5});
    EXPECT_THAT(
        write_markdown(result),
        HasSubstr(
            "In 16 blocks of the samples, in order of time, NVML's mean SM clock was 1,650 to 1,755 MHz and the median 4.000 to 4.255 ms; their correlation is -1.00: samples took longer at a lower clock."));
    for (int b = 0; b < 16; ++b) conditions.blocks[static_cast<std::size_t>(b)].median_ms = b % 2 == 0 ? 4 : 4.1;
    EXPECT_THAT(write_markdown(result), HasSubstr("4.000 to 4.100 ms; their correlation is 0.11."));
    for (ConditionBlock& block : conditions.blocks) block.sm_clock_mhz = 1755;
    EXPECT_THAT(write_markdown(result),
                HasSubstr("NVML's mean SM clock was 1,755 MHz and the median 4.000 to 4.100 ms."))
        << "a clock that stands still correlates with nothing";
    for (ConditionBlock& block : conditions.blocks) block.sm_clock_mhz.reset();
    EXPECT_THAT(write_markdown(result), Not(HasSubstr("blocks of the samples")));
}

TEST(Markdown, ShowsTheClockInTheGraphBesideNvmlsAndWhatReadingItCosts) {
    Result result = example::profiled_result();
    result.points.resize(1);
    Point& point = result.points[0];
    GraphClock& clock = point.graph_clock.emplace();
    for (const StepResult& step : point.steps) clock.step_mhz.push_back(step.op == "gemm" ? 1570 : 1725);
    clock.graphs = 5;
    clock.places = 62;
    clock.cost_us = 2.34;
    EXPECT_THAT(
        write_markdown(result),
        HasSubstr(
            "SM clock: 1,570 MHz in gemm, 1,725 MHz in attention, 1,725 MHz in embedding, 1,725 MHz in layernorm (read in the graph); NVML's mean 1,755 MHz. It was read at 62 places of 5 graphs that are not the timed one; a place adds 2.3 us to a graph."));
    clock = {.unavailable = "the forward is too short", .step_mhz = {}};
    EXPECT_THAT(write_markdown(result),
                HasSubstr("The SM clock inside the graph was not read: the forward is too short."));
}

TEST(Markdown, SaysWhereFiguresPerElapsedCycleAreWithheld) {
    Result result = example::profiled_result();
    result.points.resize(1);
    StepResult& step = result.points[0].steps[1];
    EXPECT_THAT(write_markdown(result), Not(HasSubstr("are withheld")));
    step.counters["time"] = 3e3 * step.device_us().value();
    step.counters["sm_cycles_active_max"] = step.counters["sm_cycles_elapsed"] = 1;
    EXPECT_THAT(write_markdown(result), Not(HasSubstr("are withheld"))) << "its SMs were at work all the time";
    step.counters["sm_cycles_elapsed"] = 3;
    EXPECT_THAT(write_markdown(result), HasSubstr("In 1 of "));
    EXPECT_THAT(write_markdown(result), HasSubstr("figures per elapsed cycle are withheld there"));
}

TEST(Markdown, HostileNamesStayText) {
    const std::string hostile = "</td><script>x</script>|`|\\|\n# h\n[l](javascript:x) @all ![i](http://i)";
    Result result = example::profiled_result();
    Point& point = result.points[0];
    for (const char* axis : {"model", "direction", "attention"}) point.set(axis, hostile);
    point.reason = point.steps[0].layer = point.steps[0].op = point.steps[0].kernels[0].name =
        point.steps[0].kernels[0].short_name = point.steps[0].implementation =
            point.steps[0].kernels[0].occupancy_hint = point.marginal[0].op = hostile;
    point.steps[0].kernels[0].limiters = {hostile};
    point.conditions.throttle_reasons = {hostile};
    point.conditions.power_w = Quantity::unavailable(hostile);
    point.end_to_end->energy_per_token_j = Quantity::unavailable(hostile);
    point.activity.unavailable = point.counters.unavailable = result.points[3].reason = hostile;
    result.warnings = {hostile};
    result.ceilings.device = result.ceilings.driver = result.ceilings.measured_at = result.ceilings.ceilings[0].name =
        result.ceilings.ceilings[0].value.reason = hostile;
    Environment& environment = result.environment;
    environment.kbench_version = environment.command_line = environment.gpu->name = environment.host.cpu =
        environment.libraries["blas"] = hostile;
    const std::string text = write_markdown(result);
    expect_whole_tables(text);
    EXPECT_THAT(text, AllOf(Not(HasSubstr("<script>")), Not(HasSubstr("\n# h")), Not(HasSubstr("[l](")),
                            Not(HasSubstr("@all")), Not(HasSubstr("http://"))));
}

}  // namespace
}  // namespace kbench
