// Each line of the ledger on numbers made by hand. The machine of known_points.h: a microsecond is 1000 cycles, 10^6
// bytes of DRAM, 4 10^6 of L2, 10^7 of L1, 10^7 FLOPs on plain cores and 10^8 on tensor cores; an empty kernel takes 1
// us.
#include "analysis/explain/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::HasSubstr;

Ledger ledger_of(const Result& result) { return make_ledger(result.points.front(), Roofs(result)); }

/// Expects these lines and zero on all others.
void expect_lines(const Lines& lines, const std::map<Line, double>& expected) {
    for (std::size_t i = 0; i < line_count; ++i) {
        const auto found = expected.find(line_at(i));
        EXPECT_NEAR(lines[line_at(i)], found == expected.end() ? 0 : found->second, 1e-6) << info(line_at(i)).name;
    }
}

Lines lines_of(const Step& step, double run_clock_mhz = known::clock_mhz) {
    static Result result;  // the ledger points into it
    result = known::result_of({step}, known::gpu_roofs(), 0, run_clock_mhz);
    const Ledger ledger = ledger_of(result);
    EXPECT_NEAR(ledger.steps[0].lines.total_us(), step.us + step.gap_us * step.kernels, 1e-6);
    EXPECT_NEAR(ledger.total.total_us(), ledger.end_to_end_us, 1e-6);
    EXPECT_TRUE(ledger.closes());
    return ledger.steps[0].lines;
}

TEST(LedgerLines, ALevelThatDemandsLongestHasItsLine) {
    // 60 us of 10^6 bytes, above it SMs with warps that wait.
    expect_lines(lines_of({.dram = 0.6, .l2 = 0.5, .l1 = 0.4}), {{Line::dram, 60}, {Line::other, 40}});
    expect_lines(lines_of({.dram = 0.5, .l2 = 0.6, .l1 = 0.4}), {{Line::l2, 60}, {Line::other, 40}});
    expect_lines(lines_of({.dram = 0.4, .l2 = 0.5, .l1 = 0.6}), {{Line::l1, 60}, {Line::other, 40}});
    expect_lines(lines_of({.compute = 0.7, .dram = 0.6, .issue = 0.7}), {{Line::compute, 70}, {Line::other, 30}});
}

TEST(LedgerLines, DemandIsWhicheverLineItIsOn) {
    for (const Step& step : {Step{.compute = 0.6}, {.dram = 0.6}, {.l2 = 0.6}, {.l1 = 0.6}})
        EXPECT_NEAR(lines_of(step).demand_us(), 60, 1e-9);
}

TEST(LedgerLines, ReadsAndWritesOfDramAddUp) {
    Result result = known::result_of({{}});
    result.points[0].steps[0].counters["dram_read_bytes"] = 20e6;
    result.points[0].steps[0].counters["dram_write_bytes"] = 15e6;
    expect_lines(ledger_of(result).steps[0].lines, {{Line::dram, 35}, {Line::other, 65}});
}

TEST(LedgerLines, ALowerClockMakesOnChipRoofsLonger) {
    // 50 us at 1000 MHz are 62.5 at 800; 100 000 cycles active are 125 us, more than the step's: nothing is idle.
    expect_lines(lines_of({.compute = 0.5, .issue = 0.4}, 800),
                 {{Line::compute, 50}, {Line::clock, 12.5}, {Line::other, 37.5}});
    expect_lines(lines_of({.l1 = 0.5}, 800), {{Line::l1, 50}, {Line::clock, 12.5}, {Line::other, 37.5}});
    expect_lines(lines_of({.l2 = 0.5}, 800), {{Line::l2, 50}, {Line::other, 50}});
    expect_lines(lines_of({.dram = 0.5}, 800), {{Line::dram, 50}, {Line::other, 50}});
}

TEST(LedgerLines, AHigherClockMakesThemShorter) {
    // 50 us at 1000 MHz are 40 at 1250; 100 000 cycles active are 80 us.
    expect_lines(lines_of({.compute = 0.5, .issue = 0.5}, 1250),
                 {{Line::compute, 50}, {Line::clock, -10}, {Line::idle_sms, 19}, {Line::launch, 1}, {Line::other, 40}});
}

TEST(LedgerLines, WithoutAClockRoofsAreTakenAsTheyAre) {
    // Active SMs are then a share of the counter run: 80 000 of 100 000 cycles in 90 us are 72 us.
    Result result = known::result_of({{.compute = 0.5, .active = 0.8, .issue = 0.5}}, known::gpu_roofs(), 0, 0);
    result.points[0].steps[0].counters["sm_cycles_elapsed"] = 100e3;
    result.points[0].steps[0].counters["time"] = 90e3;
    expect_lines(ledger_of(result).steps[0].lines,
                 {{Line::compute, 50}, {Line::launch, 1}, {Line::idle_sms, 27}, {Line::other, 22}});
    result.points[0].steps[0].counters["sm_cycles_elapsed"] = 0;  // such a counter is none
    expect_lines(ledger_of(result).steps[0].lines, {{Line::compute, 50}, {Line::rest, 50}});
    result.points[0].steps[0].counters["sm_cycles_elapsed"] = 100e3;
    result.points[0].steps[0].counters.erase("time");
    expect_lines(ledger_of(result).steps[0].lines, {{Line::compute, 50}, {Line::rest, 50}});
}

TEST(LedgerLines, TheLongestDemandIsThatOfTheRun) {
    // Compute 50 us and DRAM 55 at the roofs' clocks; at 800 MHz compute has 62.5.
    expect_lines(lines_of({.compute = 0.5, .dram = 0.55}, 800),
                 {{Line::compute, 50}, {Line::clock, 12.5}, {Line::other, 37.5}});
    // With 10 us of executed extra work as well.
    expect_lines(lines_of({.op = "gemm", .compute = 0.5, .dram = 0.55, .executed = 0.1}),
                 {{Line::compute, 50}, {Line::extra_work, 10}, {Line::other, 40}});
}

TEST(LedgerLines, ExtraWorkIsWhatWasExecutedBeyondTheModel) {
    expect_lines(lines_of({.op = "gemm", .compute = 0.5, .executed = 0.04}, 800),
                 {{Line::compute, 50}, {Line::clock, 12.5}, {Line::extra_work, 5}, {Line::other, 32.5}});

    Result result = known::result_of({{.op = "gemm", .compute = 0.5}});
    StepResult& gemm = result.points[0].steps[0];
    gemm.padding_flops = 3 * known::tensor_flops;  // 3 us
    expect_lines(ledger_of(result).steps[0].lines, {{Line::compute, 50}, {Line::extra_work, 3}, {Line::other, 47}});
    gemm.counters["tensor_fp16_ops"] = 48 * known::tensor_flops;  // GELU's FLOPs ran on plain cores
    expect_lines(ledger_of(result).steps[0].lines, {{Line::compute, 50}, {Line::extra_work, -2}, {Line::other, 52}});
    gemm.counters["tensor_fp16_ops"] = 0;  // ran on plain cores as a whole: not what the roof speaks of
    expect_lines(ledger_of(result).steps[0].lines, {{Line::compute, 50}, {Line::extra_work, 3}, {Line::other, 47}});
}

TEST(LedgerLines, WhatComputesInFp32IsComparedWithFp32) {
    // A layer norm of fp16 data: 500 10^6 FLOPs are 50 us on plain cores; 300 10^6 FFMA are 60.
    Result result = known::result_of({{.precision = Precision::fp16, .compute = 0.5, .issue = 0.5}});
    StepResult& norm = result.points[0].steps[0];
    norm.counters.insert({{"sass_fadd", 0}, {"sass_fmul", 0}, {"sass_ffma", 300e6}, {"tensor_fp16_ops", 0}});
    expect_lines(ledger_of(result).steps[0].lines, {{Line::compute, 50}, {Line::extra_work, 10}, {Line::other, 40}});
}

TEST(LedgerLines, WhatThisKbenchDoesNotKnowIsComparedWithTheUnitThatItRanOn) {
    Result result = known::result_of({{.op = "gemm", .compute = 0.05}});
    StepResult& step = result.points[0].steps[0];
    for (const auto& [op, direction] : {std::pair{"unheard_of", Direction::fwd}, {"layernorm", Direction::dgrad}}) {
        SCOPED_TRACE(op);
        step.op = op;
        step.direction = direction;
        step.matrix_flops = step.cost.flops;
        expect_lines(ledger_of(result).steps[0].lines, {{Line::compute, 5}, {Line::other, 95}});
        step.matrix_flops = 0;
        expect_lines(ledger_of(result).steps[0].lines, {{Line::compute, 50}, {Line::other, 50}});
    }
}

TEST(LedgerLines, SmsWithoutAWarpAreIdleBeyondStartingAndEnding) {
    // 30 of 100 us inactive, 1 of them an empty kernel's.
    expect_lines(lines_of({.dram = 0.5, .active = 0.7}),
                 {{Line::dram, 50}, {Line::launch, 1}, {Line::idle_sms, 29}, {Line::other, 20}});
    // At most what the demand leaves.
    expect_lines(lines_of({.dram = 0.9, .active = 0.7}), {{Line::dram, 90}, {Line::launch, 1}, {Line::idle_sms, 9}});
}

TEST(LedgerLines, InstructionsAreIssueSlotsBeyondTheDemand) {
    expect_lines(lines_of({.compute = 0.3, .issue = 0.7}),
                 {{Line::compute, 30}, {Line::instructions, 40}, {Line::other, 30}});
    expect_lines(lines_of({.compute = 0.3, .issue = 0.2}), {{Line::compute, 30}, {Line::other, 70}});
    // Issued while active: IPC 2.4 of 4 in half of the time.
    expect_lines(lines_of({.active = 0.5, .issue = 0.3}),
                 {{Line::launch, 1}, {Line::idle_sms, 49}, {Line::instructions, 30}, {Line::other, 20}});
}

TEST(LedgerLines, WithoutCountersTheyAreTheRest) {
    Result result = known::result_of({{.compute = 0.3, .streaming = 0.4, .counted = false}});
    const Ledger ledger = ledger_of(result);
    expect_lines(ledger.steps[0].lines, {{Line::dram, 40}, {Line::rest, 60}});
    EXPECT_FALSE(ledger.steps[0].split);
    EXPECT_EQ(ledger.steps[0].binding()->origin, Origin::derived);
}

TEST(LedgerLines, ADemandBeyondTheTimeIsANegativeRest) {
    expect_lines(lines_of({.dram = 1.2}), {{Line::dram, 120}, {Line::rest, -20}});
    expect_lines(lines_of({.compute = 0.9}, 750), {{Line::compute, 90}, {Line::clock, 30}, {Line::rest, -20}});
    expect_lines(lines_of({.streaming = 1.3, .counted = false}), {{Line::dram, 130}, {Line::rest, -30}});
    expect_lines(lines_of({.op = "gemm", .compute = 0.9, .executed = 0.3}),
                 {{Line::compute, 90}, {Line::extra_work, 30}, {Line::rest, -20}});
}

TEST(LedgerLines, AGapAndAnIdleStartShareAnEmptyKernelsTime) {
    // Idle 10 us: of 1 us an 0.3 us gap leaves 0.7.
    expect_lines(lines_of({.gap_us = 0.3, .dram = 0.5, .active = 0.9}),
                 {{Line::dram, 50}, {Line::launch, 1}, {Line::idle_sms, 9.3}, {Line::other, 40}});
    // A gap of 4 us: 1 launch, 3 dependency, nothing left for the start.
    expect_lines(lines_of({.gap_us = 4, .dram = 0.5, .active = 0.9}),
                 {{Line::dram, 50}, {Line::launch, 1}, {Line::dependency, 3}, {Line::idle_sms, 10}, {Line::other, 40}});
}

TEST(LedgerLines, GapsWithinAStepAreGaps) {
    // Three kernels of 30 us: 0.2 us each before, of 0.6 + 2.4 launch; 9 us inactive in all.
    expect_lines(lines_of({.us = 90, .gap_us = 0.2, .kernels = 3, .dram = 0.5, .active = 0.9}),
                 {{Line::dram, 45}, {Line::launch, 3}, {Line::idle_sms, 6.6}, {Line::other, 36}});
    // Gaps of 3 us: 1 launch and 2 dependency each.
    expect_lines(lines_of({.us = 90, .gap_us = 3, .kernels = 3, .dram = 0.5}),
                 {{Line::dram, 45}, {Line::launch, 3}, {Line::dependency, 6}, {Line::other, 45}});
}

TEST(LedgerLines, AGapThatOverlapsIsNegative) {
    expect_lines(lines_of({.us = 100, .gap_us = -0.5, .dram = 0.5}),
                 {{Line::dram, 50}, {Line::launch, -0.5}, {Line::other, 50}});
}

TEST(LedgerLines, WithoutAnEmptyKernelsTimeGapsAreLaunches) {
    Result result =
        known::result_of({{.gap_us = 4, .dram = 0.5, .active = 0.9}}, known::without(known::gpu_roofs(), "graph_node"));
    expect_lines(ledger_of(result).steps[0].lines,
                 {{Line::dram, 50}, {Line::launch, 4}, {Line::idle_sms, 10}, {Line::other, 40}});
}

TEST(LedgerLines, WithoutRoofsThereIsNoDemand) {
    Result result = known::result_of({{.compute = 0.5, .dram = 0.5, .active = 0.9, .issue = 0.2}}, {});
    const Ledger ledger = ledger_of(result);
    EXPECT_EQ(ledger.roofs_unavailable, "nobody measured them");
    EXPECT_EQ(ledger.steps[0].binding(), nullptr);
    EXPECT_EQ(ledger.steps[0].roof_share(), 0);
    expect_lines(ledger.steps[0].lines, {{Line::idle_sms, 10}, {Line::instructions, 20}, {Line::other, 70}});
}

TEST(LedgerLines, OfAnUntimedStepAreEmpty) {
    Result result = known::result_of({{}, {.us = 0, .kernels = 0}});
    result.points[0].steps[1].cost.flops = 1e9;
    result.points[0].steps[1].counters["dram_read_bytes"] = 1e9;
    const Ledger ledger = ledger_of(result);
    expect_lines(ledger.steps[1].lines, {});
    EXPECT_EQ(ledger.steps[1].roof_share(), 0);
    EXPECT_TRUE(ledger.closes());
}

TEST(LedgerDemands, StandLongestFirstWithWorkAndOrigin) {
    Result result =
        known::result_of({{.op = "gemm", .compute = 0.5, .dram = 0.3, .l2 = 0.4, .l1 = 0.1, .executed = 0.02}},
                         known::gpu_roofs(), 0, 800);
    const Ledger ledger = ledger_of(result);
    const std::vector<Demand>& demands = ledger.steps[0].demands;
    ASSERT_EQ(demands.size(), 4);
    EXPECT_EQ(demands[0].level, std::nullopt);
    EXPECT_EQ(demands[0].roof.ceiling, "fp16_tensor");
    EXPECT_EQ(demands[0].origin, Origin::derived);
    EXPECT_NEAR(demands[0].work, 50 * known::tensor_flops, 1);
    EXPECT_NEAR(demands[0].us, 50, 1e-9);
    EXPECT_NEAR(demands[0].run_us, 65, 1e-9);  // (50 + 2) / 0.8
    EXPECT_EQ(demands[1].level, Level::l2);
    EXPECT_NEAR(demands[1].work, 40 * known::l2_bytes, 1);
    EXPECT_EQ(demands[2].level, Level::dram);
    EXPECT_EQ(demands[2].origin, Origin::measured);
    EXPECT_EQ(demands[3].level, Level::l1);
    EXPECT_NEAR(demands[3].run_us, 12.5, 1e-9);
    EXPECT_NEAR(ledger.steps[0].roof_share(), 0.5, 1e-9);
}

TEST(LedgerDemands, ACountedZeroIsKnownAndBindsNothing) {
    Result result = known::result_of({{}});
    const Ledger ledger = ledger_of(result);
    EXPECT_EQ(ledger.steps[0].demands.size(), 3);  // the levels; no FLOPs
    EXPECT_EQ(ledger.steps[0].binding(), nullptr);
}

TEST(LedgerDemands, NoBytesInTheModelAreNoCount) {
    Result result = known::result_of({{.compute = 0.5, .counted = false}});
    const Ledger ledger = ledger_of(result);
    ASSERT_EQ(ledger.steps[0].demands.size(), 1);
    EXPECT_EQ(ledger.steps[0].demands[0].level, std::nullopt);
}

TEST(LedgerDemands, OfARoofOfNothingAreNone) {
    CeilingRun roofs = known::without(known::gpu_roofs(), "l2_read");
    roofs.ceilings.push_back(known::ceiling("l2_read", 0));
    Result result = known::result_of({{.dram = 0.5, .l2 = 0.9}}, roofs);
    const Ledger ledger = ledger_of(result);
    EXPECT_EQ(ledger.steps[0].demands.size(), 2);
    expect_lines(ledger.steps[0].lines, {{Line::dram, 50}, {Line::other, 50}});
}

TEST(LedgerDemands, OfARoofWithoutAClockAreNotScaled) {
    CeilingRun roofs = known::without(known::gpu_roofs(), "fp32_plain");
    roofs.ceilings.push_back(known::ceiling("fp32_plain", 10, 0));
    Result result = known::result_of({{.compute = 0.5, .issue = 0.4}}, roofs, 0, 800);
    expect_lines(ledger_of(result).steps[0].lines, {{Line::compute, 50}, {Line::other, 50}});
}

TEST(LedgerDemands, EstimatedBytesOfACpuStayEstimated) {
    Result result = known::result_of({{.kernels = 0, .streaming = 0.2, .counted = false}}, known::cpu_roofs());
    Point& cpu = result.points[0];
    cpu.counters.metrics = {{"dram_read_bytes", "byte", "", Origin::estimated, "the cost model"}};
    cpu.steps[0].counters = {{"dram_read_bytes", 30e6}, {"dram_write_bytes", 10e6}, {"ipc", 2}};
    const Ledger ledger = ledger_of(result);
    ASSERT_NE(ledger.steps[0].binding(), nullptr);
    EXPECT_EQ(ledger.steps[0].binding()->origin, Origin::estimated);
    expect_lines(ledger.steps[0].lines, {{Line::dram, 40}, {Line::rest, 60}});
}

TEST(LedgerTotals, SumStepsAndCloseOnTheEndToEndTime) {
    // 100 us, 50 us after a gap of 2; 160 end to end: 8 are missing, 5 %.
    Result result =
        known::result_of({{.dram = 0.5}, {.us = 50, .gap_us = 2, .compute = 0.8, .issue = 0.8}}, known::gpu_roofs(), 8);
    const Ledger ledger = ledger_of(result);
    EXPECT_NEAR(ledger.end_to_end_us, 160, 1e-9);
    expect_lines(ledger.total, {{Line::dram, 50},
                                {Line::compute, 40},
                                {Line::other, 60},
                                {Line::launch, 1},
                                {Line::dependency, 1},
                                {Line::residual, 8}});
    EXPECT_NEAR(ledger.total.demand_us(), 90, 1e-9);
    EXPECT_NEAR(ledger.residual_share(), 0.05, 1e-9);
    EXPECT_FALSE(ledger.closes());
}

TEST(LedgerTotals, CloseWithinTwoPercentEitherWay) {
    const auto closes_with = [](double step_us) {
        Result result = known::result_of({{.us = step_us}}, known::gpu_roofs(), 100 - step_us);
        return ledger_of(result).closes();
    };
    EXPECT_TRUE(closes_with(98));
    EXPECT_TRUE(closes_with(98.1));
    EXPECT_FALSE(closes_with(97.9));
    EXPECT_TRUE(closes_with(101.9));
    EXPECT_FALSE(closes_with(102.1));
}

TEST(LedgerTotals, OfAPointThatWasNotTimedAreUnavailable) {
    Result result = known::result_of({{}});
    result.points[0].end_to_end.reset();
    EXPECT_EQ(ledger_of(result).unavailable, "the point was not timed");
    result.points[0].reason = "no fp16 here";
    const Ledger ledger = ledger_of(result);
    EXPECT_EQ(ledger.unavailable, "no fp16 here");
    EXPECT_TRUE(ledger.steps.empty());
    EXPECT_FALSE(ledger.closes());
}

TEST(LedgerGroups, SumStepsOfALayerAndOfAnOp) {
    Result result = known::result_of({{.layer = "h.0.ln_1", .us = 10, .gap_us = 1, .dram = 0.5},
                                      {.layer = "h.0.mlp", .op = "gemm", .us = 50, .compute = 0.5},
                                      {.layer = "h.1.ln_1", .us = 10, .dram = 0.6}});
    const Ledger ledger = ledger_of(result);
    ASSERT_EQ(ledger.by_layer.size(), 2);
    EXPECT_EQ(ledger.by_layer[0].name, "h.*.mlp");
    EXPECT_EQ(ledger.by_layer[1].name, "h.*.ln_1");
    EXPECT_EQ(ledger.by_layer[1].steps, 2);
    EXPECT_NEAR(ledger.by_layer[1].time_us, 20, 1e-9);
    expect_lines(ledger.by_layer[1].lines, {{Line::dram, 11}, {Line::launch, 1}, {Line::other, 9}});
    ASSERT_EQ(ledger.by_op.size(), 2);
    EXPECT_EQ(ledger.by_op[0].name, "gemm");
    EXPECT_EQ(ledger.by_op[1].name, "layernorm");
    EXPECT_EQ(ledger.by_op[1].steps, 2);
}

TEST(LedgerGroups, OfACpuHaveNoGaps) {
    Result result = known::result_of({{.kernels = 0, .compute = 0.5, .counted = false}}, known::cpu_roofs(), 1);
    const Ledger ledger = ledger_of(result);
    expect_lines(ledger.total, {{Line::compute, 50}, {Line::rest, 50}, {Line::residual, 1}});
    EXPECT_TRUE(ledger.closes());
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
