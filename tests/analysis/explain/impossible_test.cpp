// What cannot be is found where it is planted, and nowhere else.
#include "analysis/explain/impossible.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "analysis/compare/compare.h"
#include "analysis/explain/explain.h"
#include "analysis/report/render/render.h"
#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

std::vector<std::string> impossible_in(const Result& result) { return ExplainedResult(result).impossible(); }

/// A product at 90 % of its roof, a copy at 80 % of DRAM's.
Result busy() {
    return known::result_of({Step{.op = "gemm", .us = 400, .compute = 0.9, .dram = 0.1, .unfused = 0.1},
                             Step{.us = 100, .dram = 0.8, .unfused = 0.8}});
}

struct ImpossibleFigure {
    std::string name;
    std::function<void(Result&)> plant;
    std::string found;
};

class Impossible : public testing::TestWithParam<ImpossibleFigure> {};

TEST_P(Impossible, IsSaidFirstAndNothingIsConcluded) {
    Result result = busy();
    ASSERT_THAT(impossible_in(result), IsEmpty());
    GetParam().plant(result);
    EXPECT_THAT(impossible_in(result), testing::Contains(HasSubstr(GetParam().found)));
    const ExplainedResult explained(result);
    const Explanation& explanation = explained.of(0);
    EXPECT_THAT(explanation.answer.front(), AllOf(HasSubstr("impossible: "), HasSubstr(GetParam().found)));
    EXPECT_EQ(explanation.verdicts.model.bound, Bound::not_identifiable);
    EXPECT_EQ(explanation.verdicts.model.rule, "impossible");
    EXPECT_EQ(explanation.verdicts.model.level, "");
    EXPECT_THAT(explanation.verdicts.model.evidence, ElementsAre("impossible figures"));
    for (const Verdict& layer : explanation.verdicts.layers) EXPECT_EQ(layer.bound, Bound::not_identifiable);
    for (const Verdict& step : explanation.verdicts.steps) EXPECT_EQ(step.bound, Bound::not_identifiable);
    for (const Hypothesis& hypothesis : explanation.verdicts.model.hypotheses)
        EXPECT_EQ(hypothesis.finding, Finding::not_identifiable);
    for (const std::string& text :
         {write_terminal(explained, 200), write_markdown(explained), page_document(write_html(explained)).dump()}) {
        EXPECT_THAT(text, HasSubstr("impossible: "));
        EXPECT_THAT(text, Not(HasSubstr("It is compute-bound")));
        EXPECT_THAT(text, Not(HasSubstr("is not the bottleneck")));
    }
}

struct Verified {
    std::int64_t checked, total;
    double error, bound, ratio;
};
void verified(Result& result, const Verified& v) {
    result.points[0].verification.steps = {
        {"gemm", "m8n8k8", "blas", "", v.checked, v.total, v.error, v.bound, v.ratio}};
}

void scale_roof(Result& result, std::string_view name, double factor) {
    for (Ceiling& ceiling : result.ceilings.ceilings)
        if (ceiling.name == name) ceiling.value = Quantity::measured(*ceiling.value.value * factor);
}

INSTANTIATE_TEST_SUITE_P(
    Plants, Impossible,
    testing::Values(
        ImpossibleFigure{"TimeZero", [](Result& r) { r.points[0].end_to_end->latency.summary_ms.median = 0; },
                         "the median latency is 0 ms"},
        ImpossibleFigure{"WorkNotUseful",
                         [](Result& r) { r.points[0].steps[0].padding_flops = r.points[0].steps[0].cost.flops; },
                         "FLOPs and counted bytes need 1"},
        ImpossibleFigure{"ErrorOverItsBound",
                         [](Result& r) {
                             verified(r, {100, 100, 9e-3, 1e-3, 9});
                         },
                         "found an error of 9 times its bound"},
        ImpossibleFigure{"ErrorThatIsNoNumber",
                         [](Result& r) {
                             verified(r, {100, 100, NAN, 1e-3, NAN});
                         },
                         "found an error of nan times its bound"},
        ImpossibleFigure{"NothingVerified",
                         [](Result& r) {
                             verified(r, {0, 0, 0, 0, 0});
                         },
                         "looked at 0 of 0 elements, so nothing was verified"},
        ImpossibleFigure{"LessThanNothingVerified",
                         [](Result& r) {
                             verified(r, {-5, -9, 0, 0, 0});
                         },
                         "looked at -5 of -9 elements"},
        ImpossibleFigure{"MoreThanAllVerified",
                         [](Result& r) {
                             verified(r, {9, 5, 0, 0, 0});
                         },
                         "looked at 9 of 5 elements"},
        ImpossibleFigure{"ErrorUnlikeItsRatio",
                         [](Result& r) {
                             verified(r, {100, 100, 1e9, 1e-9, 0.5});
                         },
                         "says an error of 1e+09, a bound of 1e-09 and a ratio of 0.5"},
        ImpossibleFigure{"TimeNegative", [](Result& r) { r.points[0].end_to_end->latency.summary_ms.median = -1.5; },
                         "the median latency is -1.5 ms"},
        ImpossibleFigure{"SampleNegative",
                         [](Result& r) {
                             r.points[0].end_to_end->latency.samples_ms = {1, -2};
                         },
                         "a sample of the latency is -2 ms"},
        ImpossibleFigure{"KernelNegative", [](Result& r) { r.points[0].steps[0].kernels[0].time_us = -3; }, "is -3 us"},
        ImpossibleFigure{"StepOfNoTime", [](Result& r) { r.points[0].steps[1].time_us.emplace().median = 0; },
                         "step 1 (h.0.ln_1, layernorm) is 0 us"},
        ImpossibleFigure{
            "AnotherPrecision", [](Result& r) { r.points[0].steps[0].precision = Precision::fp32; },
            "suspect, in this order, the precision that ran, the work that is counted, the roofs, the clock"},
        ImpossibleFigure{"ARoofTenthAsHigh",
                         [](Result& r) {
                             scale_roof(r, "dram_read", 0.1);
                             scale_roof(r, "dram_copy", 0.1);
                         },
                         "of the time at their roofs"},
        ImpossibleFigure{"HalfTheTime", [](Result& r) { r.points[0].end_to_end->latency.summary_ms.median *= 0.5; },
                         "FLOPs and counted bytes need 176 % of the time at their roofs"},
        ImpossibleFigure{"LowRoofsOfACpu",
                         [](Result& r) {
                             r = known::result_of({{.us = 1000, .kernels = 0, .compute = 2, .counted = false}},
                                                  known::cpu_roofs());
                         },
                         "suspect, in this order, the roofs (did other work use the cores?), the precision that ran"},
        ImpossibleFigure{"AsFastOnAQuarterOfTheSms",
                         [](Result& r) {
                             SmScaling& scaling = r.points[0].sm_scaling.emplace();
                             for (const int multiprocessors : {132, 32}) {
                                 SmCountRun& run = scaling.runs.emplace_back();
                                 run.multiprocessors = multiprocessors;
                                 run.launches = 9;
                                 run.step_us = run.step_low_us = run.step_high_us = {400, 100};
                             }
                         },
                         "on 32 of 132 SMs the FLOPs need 297 % of the time at the roofs of so many"},
        ImpossibleFigure{"TooManyInstructions", [](Result& r) { r.points[0].steps[1].counters["ipc"] = 9; },
                         "issues 9.00 instructions a cycle"},
        ImpossibleFigure{"ActiveForLongerThanItRan",
                         [](Result& r) {
                             auto& counters = r.points[0].steps[0].counters;
                             counters["sm_cycles_elapsed"] = counters["sm_cycles_active"] / 1.6;
                         },
                         "active for 160 % of the cycles"},
        ImpossibleFigure{"L2BelowDram", [](Result& r) { scale_roof(r, "l2_read", 0.1); },
                         "the roof of L2, 400 GB/s, is below that of DRAM, 1000 GB/s; suspect the roofs"},
        ImpossibleFigure{"AnotherDevice",
                         [](Result& r) {
                             r.environment.gpu.emplace();
                             r.environment.gpu->name = "NVIDIA L4";
                         },
                         "suspect the device's name"}),
    [](const auto& instance) { return instance.param.name; });

/// Half of its cores run at a higher clock than all of them.
TEST(ImpossibleFigures, FewThreadsOfACpuMayBeFasterThanTheirPartOfItsRoof) {
    Result result =
        known::result_of({{.us = 1000, .kernels = 0, .compute = 0.95, .counted = false}}, known::cpu_roofs());
    SmScaling& scaling = result.points[0].sm_scaling.emplace();
    for (const int threads : {16, 8}) {
        SmCountRun& run = scaling.runs.emplace_back();
        run.multiprocessors = threads;
        run.launches = 9;
        run.step_us = run.step_low_us = run.step_high_us = {threads == 16 ? 1000.0 : 1600.0};
    }
    EXPECT_THAT(impossible_in(result), IsEmpty());
}

TEST(ImpossibleFigures, BytesThatWereNotCountedMayHaveBeenSpared) {
    Result result = known::result_of({Step{.us = 100, .unfused = 3, .counted = false}});
    EXPECT_THAT(impossible_in(result), IsEmpty()) << "a cache may have kept them";
}

TEST(ImpossibleFigures, AComparisonConcludesNothing) {
    std::vector<NamedResult> runs{{"a", "a.json", busy()}, {"b", "b.json", busy()}};
    for (NamedResult& run : runs) run.result.points[0].end_to_end->latency.summary_ms.n = 20;
    Summary& slower = runs[1].result.points[0].end_to_end->latency.summary_ms;
    slower.median = slower.ci_low = slower.ci_high = 2 * slower.median;
    Summary& first = runs[0].result.points[0].end_to_end->latency.summary_ms;
    first.ci_low = first.ci_high = first.median;
    CompareOptions options;
    options.fail_above = 0.03;
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].change, Change::regression);
    runs[0].result.points[0].steps[0].precision = Precision::fp32;
    const Comparison comparison = compare(runs, options);
    EXPECT_EQ(comparison.pairs[0].points[0].change, Change::cannot_tell);
    EXPECT_THAT(comparison.pairs[0].points[0].evidence, IsEmpty());
    EXPECT_EQ(comparison.pairs[0].points[0].naive.fit, Fit::untested);
    for (const GroupComparison& group : comparison.pairs[0].points[0].groups) EXPECT_EQ(group.test.fit, Fit::untested);
    EXPECT_THAT(comparison.regressions, IsEmpty());
    EXPECT_THAT(write_comparison(comparison, CompareFormat::text, 10, 200), HasSubstr("impossible"));
}

TEST(ImpossibleFigures, WhatAllPointsHaveIsSaidOnce) {
    Result result = busy();
    result.points.push_back(result.points[0]);
    result.points[1].set("batch", 7);
    scale_roof(result, "l2_read", 0.1);
    result.points[1].end_to_end->latency.samples_ms = {-1};
    const std::vector<std::string> told = impossible_in(result);
    EXPECT_EQ(std::ranges::count_if(told, [](const auto& one) { return one.starts_with("the roof of L2"); }), 1);
    EXPECT_THAT(told, testing::Contains(AllOf(HasSubstr("batch 7"), HasSubstr("a sample of the latency is -1 ms"))));
    EXPECT_EQ(ExplainedResult(result).impossible(), told);
}

TEST(ImpossibleFigures, OfOnePointNeedNoTitle) {
    Result result = busy();
    result.points[0].end_to_end->latency.summary_ms.median = 0;
    EXPECT_THAT(impossible_in(result), ElementsAre(StartsWith("the median latency")));
}

/// Roofs and clocks are known to some percent; 440 of 500 us are certain.
TEST(ImpossibleFigures, AreThoseBeyondWhatMeasurementsErr) {
    const auto found = [](const std::function<void(Result&)>& plant) {
        Result result = busy();
        plant(result);
        return impossible_in(result);
    };
    for (const auto& [error, lines] : {std::pair(1.04, 0), {1.06, 1}}) {
        const auto all = SizeIs(lines);
        EXPECT_THAT(found([&](Result& r) { r.points[0].end_to_end->latency.summary_ms.median *= 0.88 / error; }), all);
        EXPECT_THAT(found([&](Result& r) {
                        auto& counters = r.points[0].steps[0].counters;
                        counters["sm_cycles_elapsed"] = counters["sm_cycles_active"] / error;
                    }),
                    all);
        EXPECT_THAT(found([&](Result& r) { scale_roof(r, "l2_read", 0.25 / error); }), all) << "of DRAM's";
        EXPECT_THAT(found([&](Result& r) { scale_roof(r, "l1_read", 0.4 / error); }), all) << "of L2's";
    }
    EXPECT_THAT(found([](Result& r) { r.points[0].steps[1].counters["ipc"] = 4.04; }), IsEmpty());
    EXPECT_THAT(found([](Result& r) { r.points[0].steps[1].counters["ipc"] = 4.06; }), SizeIs(1));
}

TEST(ImpossibleFigures, OfADeviceAreThoseBeyondAnotherMakersCard) {
    const auto found = [](double of_stated, int multiprocessors) {
        Result result = busy();
        GpuInfo& gpu = result.environment.gpu.emplace();
        gpu.name = "NVIDIA H200";
        gpu.multiprocessors = multiprocessors;
        for (Ceiling& ceiling : result.ceilings.ceilings) ceiling.value = Quantity::unavailable("not measured");
        for (Ceiling& ceiling : result.ceilings.ceilings)
            if (ceiling.name == "dram_read" || ceiling.name == "dram_copy")
                ceiling.value = Quantity::measured(of_stated * 4800);
        return impossible_in(result);
    };
    EXPECT_THAT(found(1.14, 132), IsEmpty());
    EXPECT_THAT(found(1.16, 132), ElementsAre(AllOf(StartsWith("NVIDIA H200 reached 5.57e+03 for dram_read, 1.2 times"),
                                                    HasSubstr("suspect the device's name, then the roof"))));
    EXPECT_THAT(found(1, 133), ElementsAre(HasSubstr("has 133 SMs, and its datasheet states 132")));
    EXPECT_THAT(found(1, 66), IsEmpty()) << "a part of one";
}

TEST(ImpossibleFigures, ShortStepsWithoutWorkNeedNoTime) {
    EXPECT_THAT(impossible_in(known::result_of(std::vector<Step>(100, Step{.us = 0.5}))), IsEmpty());
}

TEST(ImpossibleFigures, OfManyStepsFourAreEnough) {
    Result result = known::result_of(std::vector<Step>(10));
    for (StepResult& step : result.points[0].steps) step.counters["ipc"] = 9;
    EXPECT_THAT(impossible_in(result), SizeIs(4));
    for (StepResult& step : result.points[0].steps) {
        step.counters.clear();
        step.kernels[0].time_us = -1;
    }
    EXPECT_THAT(impossible_in(result), SizeIs(4));
}

/// No false alarm: everything that was measured and committed can be.
TEST(ImpossibleFigures, CommittedResultsHaveNone) {
    namespace fs = std::filesystem;
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(std::string(KBENCH_SOURCE_DIR) + "/results")) {
        if (!entry.path().filename().string().starts_with("result.json")) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        EXPECT_THAT(impossible_in(parse_result(text, entry.path().string())), IsEmpty()) << entry.path();
        ++files;
    }
    EXPECT_GE(files, 10);
}

}  // namespace
}  // namespace kbench
