// Points of which every cause's time is planted.
#include "analysis/explain/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::HasSubstr;

Causes causes_of(const Result& result) { return known::accounts_of(result).causes; }

/// A product of 100 us: 3 us gap before it, 10 us fixed, 60 us useful work at 1000 MHz and the rest in its main loop.
Step product() { return {.op = "gemm", .us = 100, .gap_us = 3, .compute = 0.6, .units = {}}; }
Result fitted(const std::vector<Step>& steps, double fixed_us, double slope_us, CeilingRun roofs = known::gpu_roofs(),
              double run_mhz = known::clock_mhz) {
    Result result = known::result_of(steps, std::move(roofs), 0, run_mhz);
    std::vector<int> all;
    for (std::size_t i = 0; i < steps.size(); ++i) all.push_back(static_cast<int>(i));
    result.points[0].size_scaling.push_back(known::make_sizes(all, fixed_us, slope_us));
    for (StepResult& step : result.points[0].steps) step.matrix_flops = step.op == "gemm" ? step.cost.flops : 0;
    return result;
}

void expect_lines(const CauseLines& lines, const std::map<Cause, double>& us) {
    for (std::size_t i = 0; i < cause_count; ++i) {
        const auto planted = us.find(cause_at(i));
        EXPECT_NEAR(lines.us[i].value, planted == us.end() ? 0 : planted->second, 1e-6) << info(cause_at(i)).name;
        EXPECT_LE(lines.us[i].low, lines.us[i].value + 1e-9) << info(cause_at(i)).name;
        EXPECT_GE(lines.us[i].high, lines.us[i].value - 1e-9) << info(cause_at(i)).name;
    }
}

void expect_sum(const CauseGroup& group) { EXPECT_NEAR(group.lines.total_us(), group.time_us, 1e-6) << group.name; }

TEST(Causes, FixedTimeIsWhatDoesNotGrowLessTheGaps) {
    const Causes causes = causes_of(fitted({product()}, 13, 90));
    expect_lines(causes.steps[0].lines,
                 {{Cause::useful, 60}, {Cause::main_loop, 30}, {Cause::fixed, 10}, {Cause::gaps, 3}});
    EXPECT_EQ(causes.steps[0].roof, "fp16_tensor");
    EXPECT_FALSE(causes.steps[0].is_at_memory);
    expect_lines(causes.whole.lines,
                 {{Cause::useful, 60}, {Cause::main_loop, 30}, {Cause::fixed, 10}, {Cause::gaps, 3}});
    EXPECT_NEAR(causes.whole.misfit_us, 0, 1e-6);
    EXPECT_TRUE(causes.whole.is_explanation());
}

/// At 800 MHz what ran in 100 us at the roofs' 1000 takes 125: the 25 are of work, main loop and fixed time alike.
TEST(Causes, AClockBelowTheHighestHasALineOfItsOwn) {
    Step slow = product();
    slow.us = 125;
    slow.compute = 60.0 / 125;
    const Causes causes = causes_of(fitted({slow}, 10 + 3 * 0.8, 90, known::gpu_roofs(), 800));
    expect_lines(
        causes.steps[0].lines,
        {{Cause::useful, 60}, {Cause::clock, 25}, {Cause::main_loop, 30}, {Cause::fixed, 10}, {Cause::gaps, 3}});
    expect_lines(causes.steps[0].at_run_clock,
                 {{Cause::useful, 75}, {Cause::main_loop, 37.5}, {Cause::fixed, 12.5}, {Cause::gaps, 3}});
}

/// The probe of tensor cores met the power limit, that of another unit did not: the highest clock is 1250 MHz.
TEST(Causes, TheHighestClockIsThatOfAnyProbe) {
    CeilingRun roofs = known::gpu_roofs();
    roofs.ceilings.push_back(known::ceiling("special", 1));
    roofs.ceilings.back().clock_mhz = 1250;
    const Causes causes = causes_of(fitted({product()}, 13, 90, roofs));
    expect_lines(causes.steps[0].lines, {{Cause::useful, 60 * 0.8},
                                         {Cause::clock, 100 * 0.2},
                                         {Cause::main_loop, 30 * 0.8},
                                         {Cause::fixed, 10 * 0.8},
                                         {Cause::gaps, 3}});
}

/// What a product reads takes what it takes; what stands around that is instructions.
TEST(Causes, AroundTheReadsOfAProductTheClockCounts) {
    Step attention = product();
    attention.compute = 0.3;
    attention.l2 = 0.5;
    const Causes causes = causes_of(fitted({attention}, 10 + 3 * 0.8, 90, known::gpu_roofs(), 800));
    EXPECT_EQ(causes.steps[0].roof, "L2");
    const CauseLines &lines = causes.steps[0].lines, &as_run = causes.steps[0].at_run_clock;
    EXPECT_NEAR(lines[Cause::useful].value, as_run[Cause::useful].value, 1e-6);
    double lost = 0;
    for (const Cause cause : {Cause::main_loop, Cause::fixed}) {
        EXPECT_GT(as_run[cause].value, 0);
        EXPECT_NEAR(lines[cause].value, 0.8 * as_run[cause].value, 1e-6);
        lost += 0.2 * as_run[cause].value;
    }
    EXPECT_NEAR(lines[Cause::clock].value, lost, 1e-6);
}

/// NVML's mean of the run is 1000 MHz; clocks in the graph found 800 in this step.
TEST(Causes, TheClockInTheGraphIsTheStepsOwn) {
    Step slow = product();
    slow.us = 125;
    slow.compute = 60.0 / 125;
    Result result = fitted({slow}, 10 + 3 * 0.8, 90);
    result.points[0].graph_clock = GraphClock{"", 1, 1, 0, {800}};
    EXPECT_NEAR(causes_of(result).steps[0].lines[Cause::clock].value, 25, 1e-6);
    result.points[0].graph_clock->step_mhz = {800, 800};
    EXPECT_NEAR(causes_of(result).steps[0].lines[Cause::clock].value, 0, 1e-6);
    result.points[0].graph_clock = GraphClock{"not read", 1, 1, 0, {800}};
    EXPECT_NEAR(causes_of(result).steps[0].lines[Cause::clock].value, 0, 1e-6);
}

/// Without a power limit a short product runs at 1250 MHz: its useful work takes 48 us where the roof's clock asks 60.
TEST(Causes, AClockAboveTheRoofsMakesUsefulWorkShorter) {
    Result result = fitted({product()}, 13, 90);
    result.points[0].graph_clock = GraphClock{"", 1, 1, 0, {1250}};
    const CauseLines lines = causes_of(result).steps[0].lines;
    EXPECT_NEAR(lines[Cause::useful].value, 48, 1e-6);
    EXPECT_NEAR(lines[Cause::clock].value, 0, 1e-6);
    Result by_nvml = fitted({product()}, 13, 90, known::gpu_roofs(), 1250);
    EXPECT_NEAR(causes_of(by_nvml).steps[0].lines[Cause::useful].value, 60, 1e-6);
}

TEST(Causes, UnevenWavesAreTakenOutOfWhatTheyLengthen) {
    Step uneven = product();
    uneven.active = 0.7;
    Result result = fitted({uneven}, 13, 90);
    result.points[0].steps[0].counters["sm_cycles_active_max"] = 0.9 * 100 * known::clock_mhz;
    expect_lines(causes_of(result).steps[0].lines, {{Cause::useful, 60},
                                                    {Cause::main_loop, 0.8 * 90 - 60},
                                                    {Cause::fixed, 0.8 * 10},
                                                    {Cause::uneven, 20},
                                                    {Cause::gaps, 3}});
}

TEST(Causes, ExtraWorkIsAtTheSameRoofAndClock) {
    Step padded = product();
    padded.us = 125;
    padded.compute = 60.0 / 125;
    Result result = fitted({padded}, 10 + 3 * 0.8, 90, known::gpu_roofs(), 800);
    result.points[0].steps[0].padding_flops = 8 * known::tensor_flops;
    expect_lines(causes_of(result).steps[0].lines, {{Cause::useful, 60},
                                                    {Cause::clock, 25},
                                                    {Cause::main_loop, 22},
                                                    {Cause::fixed, 10},
                                                    {Cause::extra, 8},
                                                    {Cause::gaps, 3}});
}

TEST(Causes, WorkThatRanOnAnotherUnitIsNotUsefulAtThisOne) {
    Result result = fitted({product()}, 13, 90);
    result.points[0].steps[0].counters["tensor_fp16_ops"] = 50 * known::tensor_flops;
    EXPECT_NEAR(causes_of(result).steps[0].lines[Cause::useful].value, 50, 1e-6);
    EXPECT_NEAR(causes_of(result).steps[0].lines[Cause::extra].value, 0, 1e-6);
}

/// Products by mma.sync are held to what wgmma reaches on the same chip.
TEST(Causes, ASlowerUnitIsALossOfTheMainLoop) {
    CeilingRun roofs = known::gpu_roofs();
    roofs.ceilings.push_back(known::ceiling("fp16_mma_sync", 66));
    Step attention{.op = "attention", .precision = Precision::fp16, .us = 100, .units = {}};
    Result result = fitted({attention}, 10, 90, roofs);
    StepResult& step = result.points[0].steps[0];
    step.cost.flops = 30 * known::tensor_flops;
    step.counters["tensor_wgmma_inst"] = 0;
    step.counters["tensor_pipe_inst"] = 1e6;
    const auto expect_loss = [&](const std::string& change) {
        const Causes causes = causes_of(result);
        expect_lines(causes.steps[0].lines, {{Cause::useful, 30}, {Cause::main_loop, 60}, {Cause::fixed, 10}});
        EXPECT_EQ(causes.steps[0].roof, "fp16_tensor");
        EXPECT_EQ(causes.whole.change(Cause::main_loop), change);
    };
    expect_loss("a wgmma attention");
    step.counters.erase("tensor_wgmma_inst");
    expect_loss("more independent work a warp");
    step.implementation = "attention_mma<fp16,64,64x64x2>";
    expect_loss("a wgmma attention");
}

TEST(Causes, BoundByMemoryTheyAreTheSame) {
    const Step copy{.us = 100, .gap_us = 2, .dram = 0.7, .units = {}};
    Result result = fitted({copy}, 7, 95, known::gpu_roofs(), 800);
    // Its times by size are DRAM's and do not follow the SMs' clock; its start does.
    result.points[0].size_scaling[0].times[0].us.median = 7 + 95;
    const StepCauses causes = causes_of(result).steps[0];
    EXPECT_EQ(causes.roof, "DRAM");
    EXPECT_TRUE(causes.is_at_memory);
    EXPECT_NEAR(causes.lines[Cause::useful].value, 70, 1e-6);
    EXPECT_NEAR(causes.lines[Cause::clock].value, 0, 1e-6);
    EXPECT_NEAR(causes.lines[Cause::main_loop].value, 25, 1e-6);
    EXPECT_NEAR(causes.lines[Cause::fixed].value, 7 / 0.8 - 2, 1e-6);
}

/// 50 time steps whose barrier takes 0.5 us; 20 of the 100 us are products.
Result recurrent() {
    CeilingRun roofs = known::gpu_roofs();
    roofs.ceilings.push_back(known::ceiling("grid_barrier", 0.5, 0));
    Result result = fitted({{.op = "lstm", .us = 100, .compute = 0.2, .units = {}, .time_steps = 50}}, 5, 95, roofs);
    result.points[0].steps[0].kernels[0].grid = {100, 1, 1};
    return result;
}

TEST(Causes, TimeStepsWaitForTheirExchange) {
    const CauseLines lines = causes_of(recurrent()).steps[0].lines;
    EXPECT_NEAR(lines[Cause::dependency].value, 25, 1e-6);
    EXPECT_NEAR(lines[Cause::main_loop].value, 95 - 25 - lines[Cause::useful].value, 1e-6);
    EXPECT_NEAR(lines[Cause::unexplained].value, 0, 1e-6);
}

TEST(Causes, ClocksInAKernelSayWhatItsTimeStepsWait) {
    Result result = recurrent();
    result.points[0].steps[0].account =
        StepAccount{.blocks = 4, .us = 2, .phases = {{"wait for h", 700, 0, 0}, {"cell", 1300, 0, 0}}};
    EXPECT_NEAR(causes_of(result).steps[0].lines[Cause::dependency].value, 50 * 0.7, 1e-6);
}

/// The product of a weight gradient sums over all time steps at once.
TEST(Causes, AWeightGradientWaitsForNoTimeStep) {
    Result result = recurrent();
    result.points[0].steps[0].direction = Direction::wgrad;
    EXPECT_NEAR(causes_of(result).steps[0].lines[Cause::dependency].value, 0, 1e-6);
}

TEST(Causes, WithoutTimesBySizeTheRestIsNotExplained) {
    const Causes causes = causes_of(known::result_of({product()}));
    expect_lines(causes.steps[0].lines, {{Cause::useful, 60}, {Cause::gaps, 3}, {Cause::unexplained, 40}});
    EXPECT_EQ(causes.steps[0].no_fit, "it was not timed at other sizes");
    EXPECT_NEAR(causes.whole.unfitted_us, 103, 1e-6);
    EXPECT_FALSE(causes.whole.is_explanation());
}

/// Useful work of 120 us in a slope of 90 cannot be: that stays, with its sign.
TEST(Causes, AMainLoopShorterThanItsWorkIsAMisfit) {
    Step product_ = product();
    product_.compute = 0.95;
    const Causes causes = causes_of(fitted({product_}, 13, 90));
    expect_lines(causes.steps[0].lines,
                 {{Cause::useful, 95}, {Cause::fixed, 10}, {Cause::gaps, 3}, {Cause::unexplained, -5}});
    EXPECT_NEAR(causes.whole.misfit_us, 5, 1e-6);
}

/// A B200's tensor cores have none: what DRAM takes is not all of its work, and what is left no loss of its main loop.
TEST(Causes, WithoutARoofOfItsUnitWhatGrowsWithAStepIsNotExplained) {
    Step work = product();
    work.dram = work.unfused = 0.1;
    const Causes causes = causes_of(fitted({work}, 13, 90, known::without(known::gpu_roofs(), "fp16_tensor")));
    expect_lines(causes.steps[0].lines, {{Cause::fixed, 10}, {Cause::gaps, 3}, {Cause::unexplained, 90}});
    EXPECT_EQ(causes.steps[0].roof, "");
    EXPECT_FALSE(causes.whole.is_explanation());
}

TEST(Causes, MisfitsOfStepsDoNotCancel) {
    Step longer = product(), shorter = product();
    longer.us = 120;
    longer.compute = 60.0 / 120;
    shorter.us = 80;
    shorter.compute = 60.0 / 80;
    const Causes causes = causes_of(fitted({longer, shorter}, 13, 90));
    EXPECT_NEAR(causes.whole.lines[Cause::unexplained].value, 0, 1e-6);
    EXPECT_NEAR(causes.whole.misfit_us, 40, 1e-6);
    EXPECT_FALSE(causes.whole.is_explanation());
}

TEST(Causes, ALineThatMissesAThirdSizeIsAMisfit) {
    Result result = fitted({product()}, 13, 90);
    Summary& middle = result.points[0].size_scaling[0].times[1].us;
    middle.median = middle.ci_low = middle.ci_high = 193 + 8;
    EXPECT_NEAR(causes_of(result).whole.misfit_us, 8, 1e-6);
    EXPECT_TRUE(causes_of(result).whole.is_explanation());
    middle.median = middle.ci_low = middle.ci_high = 193 + 11;
    EXPECT_FALSE(causes_of(result).whole.is_explanation());
}

TEST(Causes, AddUpToTheEndToEndTimeWithDriftAndResidual) {
    Result result = fitted({product(), {.layer = "h.0.ln_2", .us = 20, .dram = 0.5}, product()}, 13, 90);
    Point& point = result.points[0];
    point.activity.unprofiled_ms = point.end_to_end->latency.summary_ms.median - 0.020;
    point.end_to_end->latency.summary_ms.median += 0.005;
    const Causes causes = causes_of(result);
    for (const auto* groups : {&causes.by_op, &causes.by_layer})
        for (const CauseGroup& group : *groups) expect_sum(group);
    expect_sum(causes.whole);
    EXPECT_NEAR(causes.whole.time_us, point.end_to_end->latency.summary_ms.median * 1e3, 1e-6);
    double steps_us = 0;
    for (const StepCauses& step : causes.steps) {
        EXPECT_NEAR(step.lines.total_us(), step.time_us, 1e-6);
        steps_us += step.misfit_us;
    }
    EXPECT_NEAR(causes.whole.misfit_us, steps_us + 25 + 20, 1e-6);
}

TEST(Causes, WhatRecordsAddIsNoTimeOfAStep) {
    Result result = fitted({product()}, 13, 90);
    result.points[0].activity.inflation = {{2, 2, 2.5}};
    result.points[0].activity.unprofiled_ms = result.points[0].end_to_end->latency.summary_ms.median;
    EXPECT_NEAR(causes_of(result).steps[0].time_us, 102.5, 1e-6);
    EXPECT_NEAR(causes_of(result).steps[0].lines[Cause::unexplained].value, -0.5, 1e-6);
}

TEST(Causes, EachLineNamesTheChangeThatGivesItBack) {
    Step work = product(), gelu = product();
    work.active = gelu.active = 0.8;
    Result result = fitted({work}, 13, 90, known::gpu_roofs(), 900);
    Point& point = result.points[0];
    point.steps.push_back(point.steps[0]);
    point.steps[1].absorbs = {"h.0.mlp.c_fc:gemm", "h.0.mlp.act:gelu"};
    point.size_scaling.push_back(known::make_sizes({1}, 33, 70));
    for (StepResult& step : point.steps) {
        step.padding_flops = 1e6;
        step.counters["sm_cycles_active_max"] = 0.9 * 100 * known::clock_mhz;
    }
    point.conditions.throttle_reasons = {"sw_power_cap"};
    const CauseGroup whole = causes_of(result).whole;
    EXPECT_EQ(whole.change(Cause::useful), "a faster unit or a narrower precision");
    EXPECT_EQ(whole.change(Cause::clock), "a higher power limit");
    EXPECT_EQ(whole.change(Cause::main_loop), "other tiles or a deeper pipeline");
    EXPECT_THAT(whole.change(Cause::fixed),
                HasSubstr("a shorter epilogue: with gelu it is 18 us longer than that of other products"));
    EXPECT_THAT(whole.change(Cause::fixed), HasSubstr("; fewer, larger kernels"));
    EXPECT_THAT(whole.change(Cause::uneven), HasSubstr("persistent, stream-k"));
    EXPECT_THAT(whole.change(Cause::extra), HasSubstr("no padding"));
    EXPECT_EQ(whole.change(Cause::gaps), "fewer kernels, programmatic dependent launch");
    EXPECT_EQ(whole.change(Cause::unexplained), "");
    point.conditions.throttle_reasons = {};
    EXPECT_EQ(causes_of(result).whole.change(Cause::clock), "a higher clock (nvidia-smi -lgc), cooling");
    const Step copy{.us = 100, .dram = 0.7}, cached{.us = 100, .l2 = 0.7};
    EXPECT_EQ(causes_of(known::result_of({copy})).whole.change(Cause::useful), "fewer bytes (fuse, narrower types)");
    EXPECT_THAT(causes_of(known::result_of({cached})).whole.change(Cause::useful), HasSubstr("larger tiles"));
    EXPECT_THAT(causes_of(recurrent()).whole.change(Cause::dependency), HasSubstr("a quicker exchange"));
}

TEST(Causes, TellEachRoofOfTheUsefulWork) {
    const CauseGroup whole =
        causes_of(known::result_of({product(), {.us = 100, .dram = 0.7}, {.us = 100, .dram = 0.2}})).whole;
    ASSERT_EQ(whole.at_roofs.size(), 2);
    EXPECT_EQ(whole.at_roofs[0].name, "DRAM");
    EXPECT_NEAR(whole.at_roofs[0].us.value, 90, 1e-6);
    EXPECT_TRUE(whole.at_roofs[0].is_at_memory);
    EXPECT_NEAR(whole.at_roofs[1].us.value, 60, 1e-6);
}

TEST(Causes, OfAPointThatWasNotTimedAreNone) {
    Result result = known::result_of({product()});
    result.points[0].end_to_end.reset();
    result.points[0].reason = "no fp16 here";
    EXPECT_EQ(causes_of(result).unavailable, "no fp16 here");
    EXPECT_TRUE(causes_of(result).steps.empty());
}

TEST(Causes, OfACpuHaveNoGapsAndNoKernels) {
    const Step op{.us = 100, .kernels = 0, .compute = 0.4, .unfused = 0.1, .counted = false};
    const Causes causes = causes_of(known::result_of({op}, known::cpu_roofs()));
    expect_lines(causes.steps[0].lines, {{Cause::useful, 40}, {Cause::unexplained, 60}});
    EXPECT_EQ(causes.whole.change(Cause::useful), "wider instructions or a narrower precision");
}

TEST(Causes, SayWhatTheyAreAndHowTheyAreMeasured) {
    for (std::size_t i = 0; i < cause_count; ++i) {
        EXPECT_FALSE(info(cause_at(i)).name.empty());
        EXPECT_FALSE(info(cause_at(i)).what.empty());
        EXPECT_FALSE(info(cause_at(i)).how.empty());
    }
}

}  // namespace
}  // namespace kbench
