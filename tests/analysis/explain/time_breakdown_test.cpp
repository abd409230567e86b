// Each line of the time breakdown on numbers made by hand. The machine of known_points.h: a microsecond is 1000 cycles;
// an empty kernel takes 1 us.
#include "analysis/explain/time_breakdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::breakdown_of, known::Step;

/// Expects these lines and zero on all others.
void expect_lines(const Lines& lines, const std::map<Line, double>& expected) {
    for (std::size_t i = 0; i < line_count; ++i) {
        const auto found = expected.find(line_at(i));
        EXPECT_NEAR(lines[line_at(i)], found == expected.end() ? 0 : found->second, 1e-6) << info(line_at(i)).name;
    }
}

/// The time breakdown of one step.
struct OneStep {
    explicit OneStep(const Step& step, CeilingRun roofs = known::gpu_roofs())
        : result(known::result_of({step}, std::move(roofs))), accounts(known::accounts_of(result)) {
        const TimeBreakdown& breakdown = accounts.breakdown;
        EXPECT_NEAR(lines().total_us(), step.us + step.gap_us * step.kernels, 1e-6);
        EXPECT_NEAR(breakdown.total.total_us(), breakdown.end_to_end_us, 1e-6);
        EXPECT_TRUE(breakdown.closes());
    }
    const StepFacts& step() const { return accounts.facts.steps[0]; }
    Lines lines() const { return lines_of(step()); }
    double starts_us() const { return accounts.cycles.steps[0].starts_us; }
    Result result;
    known::Accounts accounts;
};

TEST(BreakdownLines, WhateverBindsAStepItsKernelsAreOneLine) {
    for (const Step& step : {Step{.compute = 0.6}, {.dram = 0.9}, {.dram = 1.2}, {.active = 0.3}, {.counted = false}})
        expect_lines(OneStep(step).lines(), {{Line::kernels, 100}});
    expect_lines(OneStep({.dram = 0.5}, {}).lines(), {{Line::kernels, 100}});
}

TEST(BreakdownLines, AGapIsALaunchUpToAnEmptyKernelsTime) {
    expect_lines(OneStep({.gap_us = 0.3}).lines(), {{Line::kernels, 100}, {Line::launch, 0.3}});
    expect_lines(OneStep({.gap_us = 4}).lines(), {{Line::kernels, 100}, {Line::launch, 1}, {Line::dependency, 3}});
}

TEST(BreakdownLines, GapsWithinAStepAreGaps) {
    const OneStep close({.us = 90, .gap_us = 0.2, .kernels = 3});
    expect_lines(close.lines(), {{Line::kernels, 90}, {Line::launch, 0.6}});
    EXPECT_NEAR(close.step().time_us, 90.4, 1e-9) << "the first gap is before the step";
    EXPECT_NEAR(close.step().kernels_us, 90, 1e-9);
    expect_lines(OneStep({.us = 90, .gap_us = 3, .kernels = 3}).lines(),
                 {{Line::kernels, 90}, {Line::launch, 3}, {Line::dependency, 6}});
}

TEST(BreakdownLines, AGapThatOverlapsIsNegative) {
    expect_lines(OneStep({.gap_us = -0.5}).lines(), {{Line::kernels, 100}, {Line::launch, -0.5}});
}

TEST(BreakdownLines, WithoutAnEmptyKernelsTimeGapsAreLaunches) {
    expect_lines(OneStep({.gap_us = 4}, known::without(known::gpu_roofs(), "graph_node")).lines(),
                 {{Line::kernels, 100}, {Line::launch, 4}});
}

TEST(BreakdownStarts, AreWhatAnEmptyKernelTakesBesideItsGap) {
    EXPECT_NEAR(OneStep({.active = 0.9}).starts_us(), 1, 1e-9);
    EXPECT_NEAR(OneStep({.gap_us = 0.3, .active = 0.9}).starts_us(), 0.7, 1e-9);
    EXPECT_NEAR(OneStep({.gap_us = 4, .active = 0.9}).starts_us(), 0, 1e-9);
    EXPECT_NEAR(OneStep({.us = 90, .gap_us = 0.2, .kernels = 3, .active = 0.9}).starts_us(), 2.4, 1e-9);
    EXPECT_NEAR(OneStep({.active = 0.995}).starts_us(), 0.5, 1e-9) << "no more than SMs are without a warp";
    EXPECT_EQ(OneStep({.active = 0.9, .counted = false}).starts_us(), 0) << "nobody counted";
}

TEST(BreakdownLines, OfAnUntimedStepAreEmpty) {
    Result result = known::result_of({{}, {.us = 0, .kernels = 0}});
    result.points[0].steps[1].cost.flops = 1e9;
    result.points[0].steps[1].counters["dram_read_bytes"] = 1e9;
    const known::Accounts accounts = known::accounts_of(result);
    expect_lines(lines_of(accounts.facts.steps[1]), {});
    EXPECT_EQ(accounts.roof_times[1].binding_share(accounts.facts.steps[1].time_us), 0);
    EXPECT_TRUE(accounts.breakdown.closes());
}

TEST(BreakdownTotals, SumStepsAndCloseOnTheEndToEndTime) {
    // 100 us, 50 us after a gap of 2; 160 end to end: 8 are missing, 5 %.
    Result result =
        known::result_of({{.dram = 0.5}, {.us = 50, .gap_us = 2, .compute = 0.8, .issue = 0.8}}, known::gpu_roofs(), 8);
    const TimeBreakdown breakdown = breakdown_of(result);
    EXPECT_NEAR(breakdown.end_to_end_us, 160, 1e-9);
    expect_lines(breakdown.total,
                 {{Line::kernels, 150}, {Line::launch, 1}, {Line::dependency, 1}, {Line::residual, 8}});
    EXPECT_NEAR(breakdown.roof_times.useful_us, 90, 1e-9);
    EXPECT_NEAR(breakdown.residual_share(), 0.05, 1e-9);
    EXPECT_FALSE(breakdown.closes());
}

TEST(BreakdownTotals, CloseWithinTwoPercentEitherWay) {
    const auto closes_with = [](double step_us) {
        Result result = known::result_of({{.us = step_us}}, known::gpu_roofs(), 100 - step_us);
        return breakdown_of(result).closes();
    };
    EXPECT_TRUE(closes_with(98));
    EXPECT_TRUE(closes_with(98.1));
    EXPECT_FALSE(closes_with(97.9));
    EXPECT_TRUE(closes_with(101.9));
    EXPECT_FALSE(closes_with(102.1));
}

TEST(BreakdownTotals, OfAPointThatWasNotTimedAreUnavailable) {
    Result result = known::result_of({{}});
    result.points[0].end_to_end.reset();
    EXPECT_EQ(breakdown_of(result).unavailable, "the point was not timed");
    result.points[0].reason = "no fp16 here";
    const TimeBreakdown breakdown = breakdown_of(result);
    EXPECT_EQ(breakdown.unavailable, "no fp16 here");
    EXPECT_TRUE(breakdown.by_op.empty());
    EXPECT_FALSE(breakdown.closes());
}

TEST(BreakdownGroups, SumStepsOfALayerAndOfAnOp) {
    Result result = known::result_of({{.layer = "h.0.ln_1", .us = 10, .gap_us = 1, .dram = 0.5},
                                      {.layer = "h.0.mlp", .op = "gemm", .us = 50, .compute = 0.5},
                                      {.layer = "h.1.ln_1", .us = 10, .dram = 0.6}});
    const TimeBreakdown breakdown = breakdown_of(result);
    ASSERT_EQ(breakdown.by_layer.size(), 2);
    EXPECT_EQ(breakdown.by_layer[0].name, "h.*.mlp");
    EXPECT_EQ(breakdown.by_layer[1].name, "h.*.ln_1");
    EXPECT_EQ(breakdown.by_layer[1].steps, 2);
    EXPECT_NEAR(breakdown.by_layer[1].time_us, 20, 1e-9);
    expect_lines(breakdown.by_layer[1].lines, {{Line::kernels, 20}, {Line::launch, 1}});
    EXPECT_NEAR(breakdown.by_layer[1].roof_times.longest_us.value, 11, 1e-9);
    ASSERT_EQ(breakdown.by_op.size(), 2);
    EXPECT_EQ(breakdown.by_op[0].name, "gemm");
    EXPECT_EQ(breakdown.by_op[1].name, "layernorm");
    EXPECT_EQ(breakdown.by_op[1].steps, 2);
}

TEST(BreakdownGroups, OfACpuHaveNoGaps) {
    Result result = known::result_of({{.kernels = 0, .compute = 0.5, .counted = false}}, known::cpu_roofs(), 1);
    const TimeBreakdown breakdown = breakdown_of(result);
    expect_lines(breakdown.total, {{Line::kernels, 100}, {Line::residual, 1}});
    EXPECT_TRUE(breakdown.closes());
}

TEST(LineInfo, EveryLineHasANameOfItsOwn) {
    std::map<std::string_view, int> names;
    for (std::size_t i = 0; i < line_count; ++i) {
        EXPECT_EQ(++names[info(line_at(i)).name], 1);
        EXPECT_FALSE(info(line_at(i)).what.empty());
    }
}

}  // namespace
}  // namespace kbench
