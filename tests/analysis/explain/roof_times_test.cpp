// Roof times on numbers made by hand. The machine of known_points.h: a microsecond is 1000 cycles, 10^6 bytes of DRAM,
// 4 10^6 of L2, 10^7 of L1, 10^7 FLOPs on plain cores and 10^8 on tensor cores.
#include "analysis/explain/roof_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/time_breakdown.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::breakdown_of, known::Step;

/// Those of the only step.
StepRoofTimes roof_times_of(const Result& result) { return known::accounts_of(result).roof_times.at(0); }

double run_us(const Step& step, std::optional<Level> level, double clock_mhz) {
    Result result = known::result_of({step}, known::gpu_roofs(), 0, clock_mhz);
    const StepRoofTimes roof_times = roof_times_of(result);
    const RoofTime* roof_time = roof_times.at(level);
    return roof_time == nullptr ? -1 : roof_time->run_us.value;
}

/// The unit's roof time of a step, and what of it is work beyond the model's.
std::pair<double, double> unit_us(const Result& result) {
    const StepRoofTimes roof_times = roof_times_of(result);
    const RoofTime* roof_time = roof_times.at({});
    if (roof_time == nullptr) return {-1, -1};
    return {roof_time->run_us.value, roof_time->extra_work / roof_time->roof.per_s * 1e6};
}

TEST(RoofTimes, StandLongestFirstWithWorkAndOrigin) {
    Result result =
        known::result_of({{.op = "gemm", .compute = 0.5, .dram = 0.3, .l2 = 0.4, .l1 = 0.1, .executed = 0.02}},
                         known::gpu_roofs(), 0, 800);
    const StepRoofTimes of_step = roof_times_of(result);
    const std::vector<RoofTime>& roof_times = of_step.work;
    ASSERT_EQ(roof_times.size(), 4);
    EXPECT_EQ(roof_times[0].level, std::nullopt);
    EXPECT_EQ(roof_times[0].roof.ceiling, "fp16_tensor");
    EXPECT_EQ(roof_times[0].origin, Origin::derived);
    EXPECT_NEAR(roof_times[0].work, 50 * known::tensor_flops, 1);
    EXPECT_NEAR(roof_times[0].us, 50, 1e-9);
    EXPECT_NEAR(roof_times[0].run_us.value, 65, 1e-9);  // (50 + 2) / 0.8
    EXPECT_EQ(roof_times[1].level, Level::l2);
    EXPECT_NEAR(roof_times[1].work, 40 * known::l2_bytes, 1);
    EXPECT_EQ(roof_times[2].level, Level::dram);
    EXPECT_EQ(roof_times[2].origin, Origin::measured);
    EXPECT_EQ(roof_times[3].level, Level::l1);
    EXPECT_NEAR(roof_times[3].run_us.value, 12.5, 1e-9);
    EXPECT_NEAR(of_step.binding_share(100), 0.5, 1e-9);
}

TEST(RoofTimes, OnTheChipFollowTheRunsClock) {
    EXPECT_NEAR(run_us({.compute = 0.5, .issue = 0.4}, {}, 800), 62.5, 1e-9);
    EXPECT_NEAR(run_us({.l1 = 0.5}, Level::l1, 800), 62.5, 1e-9);
    EXPECT_NEAR(run_us({.l2 = 0.5}, Level::l2, 800), 50, 1e-9);
    EXPECT_NEAR(run_us({.dram = 0.5}, Level::dram, 800), 50, 1e-9);
    EXPECT_NEAR(run_us({.compute = 0.5, .issue = 0.5}, {}, 1250), 50, 1e-9) << "no faster than the roof was measured";
    EXPECT_NEAR(run_us({.compute = 0.5}, {}, 0), 50, 1e-9) << "no clock was read";
}

TEST(RoofTimes, TheLongestIsThatOfTheRun) {
    // Compute 50 us and DRAM 55 at the roofs' clocks; at 800 MHz compute has 62.5.
    Result result = known::result_of({{.compute = 0.5, .dram = 0.55}}, known::gpu_roofs(), 0, 800);
    EXPECT_EQ(roof_times_of(result).binding()->level, std::nullopt);
    result = known::result_of({{.compute = 0.5, .dram = 0.55}});
    EXPECT_EQ(roof_times_of(result).binding()->level, Level::dram);
}

TEST(RoofTimes, ReadsAndWritesOfDramAddUp) {
    Result result = known::result_of({{}});
    result.points[0].steps[0].counters["dram_read_bytes"] = 20e6;
    result.points[0].steps[0].counters["dram_write_bytes"] = 15e6;
    EXPECT_NEAR(roof_times_of(result).at(Level::dram)->us, 35, 1e-9);
}

TEST(RoofTimes, ExtraWorkIsWhatWasExecutedBeyondTheModel) {
    Result result = known::result_of({{.op = "gemm", .compute = 0.5}});
    StepResult& gemm = result.points[0].steps[0];
    gemm.padding_flops = 3 * known::tensor_flops;  // 3 us
    EXPECT_THAT(unit_us(result), testing::Pair(testing::DoubleNear(53, 1e-9), testing::DoubleNear(3, 1e-9)));
    gemm.spared_flops = 20 * known::tensor_flops;  // an algorithm that does without them
    EXPECT_THAT(unit_us(result), testing::Pair(testing::DoubleNear(33, 1e-9), testing::DoubleNear(3, 1e-9)));
    gemm.counters["tensor_fp16_ops"] = 31 * known::tensor_flops;
    EXPECT_THAT(unit_us(result), testing::Pair(testing::DoubleNear(31, 1e-9), testing::DoubleNear(1, 1e-9)));
    gemm.spared_flops.reset();
    gemm.counters["tensor_fp16_ops"] = 48 * known::tensor_flops;  // GELU's FLOPs ran on plain cores
    EXPECT_THAT(unit_us(result), testing::Pair(testing::DoubleNear(48, 1e-9), testing::DoubleNear(-2, 1e-9)));
    gemm.counters["tensor_fp16_ops"] = 0;  // ran on plain cores as a whole: not what the roof speaks of
    EXPECT_THAT(unit_us(result), testing::Pair(testing::DoubleNear(53, 1e-9), testing::DoubleNear(3, 1e-9)));
}

TEST(RoofTimes, WhatComputesInFp32IsComparedWithFp32) {
    // A layer norm of fp16 data: 500 10^6 FLOPs are 50 us on plain cores; 300 10^6 FFMA are 60.
    Result result = known::result_of({{.precision = Precision::fp16, .compute = 0.5, .issue = 0.5}});
    StepResult& norm = result.points[0].steps[0];
    norm.counters.insert({{"sass_fadd", 0}, {"sass_fmul", 0}, {"sass_ffma", 300e6}, {"tensor_fp16_ops", 0}});
    EXPECT_THAT(unit_us(result), testing::Pair(testing::DoubleNear(60, 1e-9), testing::DoubleNear(10, 1e-9)));
}

TEST(RoofTimes, WhatThisKbenchDoesNotKnowIsComparedWithTheUnitThatItRanOn) {
    Result result = known::result_of({{.op = "gemm", .compute = 0.05}});
    StepResult& step = result.points[0].steps[0];
    for (const auto& [op, direction] : {std::pair{"unheard_of", Direction::fwd}, {"layernorm", Direction::dgrad}}) {
        SCOPED_TRACE(op);
        step.op = op;
        step.direction = direction;
        step.matrix_flops = step.cost.flops;
        EXPECT_NEAR(unit_us(result).first, 5, 1e-9);
        step.matrix_flops = 0;
        EXPECT_NEAR(unit_us(result).first, 50, 1e-9);
    }
}

TEST(RoofTimes, KernelsWithMmaSyncHaveARoofOfTheirOwn) {
    CeilingRun roofs = known::gpu_roofs();
    roofs.ceilings.push_back(known::ceiling("fp16_mma_sync", 50));  // half of wgmma's
    Result result = known::result_of({{.op = "gemm", .compute = 0.3}}, roofs);
    auto& counters = result.points[0].steps[0].counters;
    const auto roof = [&] { return roof_times_of(result).binding()->roof.ceiling; };
    EXPECT_EQ(roof(), "fp16_tensor") << "what it ran is not known";
    counters["tensor_pipe_inst"] = 1000;
    EXPECT_EQ(roof(), "fp16_tensor") << "nobody counted wgmma";
    counters["tensor_wgmma_inst"] = 10;
    EXPECT_EQ(roof(), "fp16_tensor");
    counters["tensor_wgmma_inst"] = 0;
    EXPECT_EQ(roof(), "fp16_mma_sync");
    EXPECT_NEAR(unit_us(result).first, 60, 1e-9);
    counters["tensor_pipe_inst"] = 0;
    EXPECT_EQ(roof(), "fp16_tensor") << "no tensor core worked";
}

TEST(RoofTimes, ACountedZeroIsKnownAndBindsNothing) {
    Result result = known::result_of({{}});
    const known::Accounts accounts = known::accounts_of(result);
    EXPECT_EQ(accounts.roof_times[0].work.size(), 3);  // the levels; no FLOPs
    EXPECT_EQ(accounts.roof_times[0].binding(), nullptr);
    EXPECT_EQ(accounts.breakdown.roof_times.longest(), nullptr);
}

TEST(RoofTimes, WithoutCountersBytesAreTheModels) {
    Result result = known::result_of({{.compute = 0.3, .unfused = 0.4, .counted = false}});
    EXPECT_EQ(roof_times_of(result).binding()->origin, Origin::derived);
    result = known::result_of({{.compute = 0.5, .counted = false}});
    const StepRoofTimes roof_times = roof_times_of(result);
    ASSERT_EQ(roof_times.work.size(), 1) << "no bytes in the model are no count";
    EXPECT_EQ(roof_times.work[0].level, std::nullopt);
}

TEST(RoofTimes, OfARoofOfNothingAreNone) {
    CeilingRun roofs = known::without(known::gpu_roofs(), "l2_read");
    roofs.ceilings.push_back(known::ceiling("l2_read", 0));
    Result result = known::result_of({{.dram = 0.5, .l2 = 0.9}}, roofs);
    EXPECT_EQ(roof_times_of(result).work.size(), 2);
    result = known::result_of({{.dram = 0.5}}, {});
    EXPECT_EQ(breakdown_of(result).roofs_unavailable, "nobody measured them");
    EXPECT_EQ(roof_times_of(result).binding(), nullptr);
    EXPECT_EQ(roof_times_of(result).binding_share(100), 0);
}

TEST(RoofTimes, OfARoofWithoutAClockAreNotScaled) {
    CeilingRun roofs = known::without(known::gpu_roofs(), "fp32_plain");
    roofs.ceilings.push_back(known::ceiling("fp32_plain", 10, 0));
    Result result = known::result_of({{.compute = 0.5, .issue = 0.4}}, roofs, 0, 800);
    EXPECT_NEAR(unit_us(result).first, 50, 1e-9);
    EXPECT_NEAR(roof_times_of(result).at({})->run_us.low, 50, 1e-9);
}

TEST(RoofTimes, EstimatedBytesOfACpuStayEstimated) {
    Result result = known::result_of({{.kernels = 0, .unfused = 0.2, .counted = false}}, known::cpu_roofs());
    Point& cpu = result.points[0];
    cpu.counters.metrics = {{"dram_read_bytes", "byte", "", Origin::estimated, "the cost model"}};
    cpu.steps[0].counters = {{"dram_read_bytes", 30e6}, {"dram_write_bytes", 10e6}, {"ipc", 2}};
    const StepRoofTimes roof_times = roof_times_of(result);
    ASSERT_NE(roof_times.binding(), nullptr);
    EXPECT_EQ(roof_times.binding()->origin, Origin::estimated);
    EXPECT_NEAR(roof_times.binding()->us, 40, 1e-9);
}

TEST(RoofTimeIntervals, ComeFromTheRoofTheClockAndTheCount) {
    CeilingRun roofs = known::gpu_roofs();
    for (Ceiling& ceiling : roofs.ceilings) {
        ceiling.low = 0.96 * ceiling.value.value.value();
        ceiling.high = 1.05 * ceiling.value.value.value();
    }
    Result result = known::result_of({{.compute = 0.5, .dram = 0.4, .l1 = 0.3}}, roofs, 0, 1000);
    result.points[0].conditions.blocks = {{1, 0.1, 980, 4}, {2, 0.1, 1025, 4}, {3, 0.1, std::nullopt, 0}};
    const known::Accounts accounts = known::accounts_of(result);
    const StepRoofTimes& roof_times = accounts.roof_times[0];
    const Interval& unit = roof_times.at({})->run_us;  // FLOPs of the model are exact
    EXPECT_NEAR(unit.low, 50 / 1.05 / 1.025, 1e-6) << "but perhaps";
    EXPECT_NEAR(unit.high, 50 / 0.96 / 0.98, 1e-6);
    const Interval& dram = roof_times.at(Level::dram)->run_us;  // has a clock of its own
    EXPECT_NEAR(dram.low, 40 * 0.98 / 1.05, 1e-6);
    EXPECT_NEAR(dram.high, 40 * 1.02 / 0.96, 1e-6);
    const Interval& l1 = roof_times.at(Level::l1)->run_us;
    EXPECT_NEAR(l1.low, 30 * 0.98 / 1.05 / 1.025, 1e-6);
    EXPECT_NEAR(accounts.facts.steps[0].clock_error, 0.025, 1e-9);
    EXPECT_NEAR(accounts.breakdown.roof_times.longest_us.high, unit.high, 1e-9);
}

/// mma.sync at its pipe's pace: NVML reads 7 % more than the SMs' own cycles tell.
TEST(RoofTimeIntervals, TakeTheLowerClockAtWhichTheStepWasCounted) {
    Result result = known::result_of({{.compute = 0.5}}, known::gpu_roofs(), 0, 1000);
    result.points[0].steps[0].counters["sm_cycles_elapsed"] = 93e3;
    result.points[0].steps[0].counters["time"] = 100e3;
    const known::Accounts accounts = known::accounts_of(result);
    EXPECT_NEAR(accounts.roof_times[0].binding()->run_us.value, 50 / 0.93, 1e-6);
    EXPECT_NEAR(accounts.roof_times[0].binding()->run_us.low, 50, 1e-6);
    EXPECT_NEAR(accounts.cycles.steps[0].no_warp, 1 - 1 / 0.93, 1e-6) << "100,000 active cycles are 107.5 us";
    result.points[0].steps[0].counters["time"] = 80e3;  // counted faster, with less load
    EXPECT_NEAR(known::accounts_of(result).cycles.steps[0].no_warp, 0, 1e-6);
}

TEST(RoofTimeIntervals, OfADatasheetsRoofAreItsValue) {
    CeilingRun roofs = known::gpu_roofs();
    for (Ceiling& ceiling : roofs.ceilings) ceiling.low = ceiling.high = 0;
    Result result = known::result_of({{.compute = 0.5}}, roofs);
    EXPECT_EQ(roof_times_of(result).binding()->run_us, Interval::exactly(50));
}

const RoofTimeSum* named(const RoofTimeSums& sums, std::string_view name, bool is_busy_time = false) {
    for (const RoofTimeSum& sum : sums.by_roof)
        if (sum.name == name && sum.is_busy_time == is_busy_time) return &sum;
    return nullptr;
}

/// A layer whose two roof times are as long, measured twice: a hair's difference must not move a third of the time.
TEST(RoofTimeSums, OfTwoRunsThatTieAreAlike) {
    double shares[2][2];
    for (const int run : {0, 1}) {
        const double hair = run == 0 ? 0.001 : -0.001;
        Result result = known::result_of({{.compute = 0.54 + hair, .l2 = 0.54 - hair}, {.compute = 0.6, .l2 = 0.1}});
        const TimeBreakdown breakdown = breakdown_of(result);
        ASSERT_NE(named(breakdown.roof_times, "fp32_plain"), nullptr);
        shares[run][0] = named(breakdown.roof_times, "fp32_plain")->us.value;
        shares[run][1] = named(breakdown.roof_times, "L2")->us.value;
        EXPECT_NEAR(breakdown.roof_times.tied_us, 100, 1e-9) << "the first step";
        EXPECT_NEAR(breakdown.roof_times.longest_us.value, 54.1 + 60, 1e-6);
    }
    EXPECT_NEAR(shares[0][0], shares[1][0], 0.5);
    EXPECT_NEAR(shares[0][1], shares[1][1], 0.5);
    EXPECT_NEAR(shares[0][0], 114, 0.2);
    EXPECT_NEAR(shares[0][1], 64, 0.2);
}

TEST(RoofTimeSums, AStepWhoseDemandsAreApartIsNotTied) {
    Result result = known::result_of({{.compute = 0.6, .l2 = 0.5}, {.compute = 0.5}});
    EXPECT_EQ(breakdown_of(result).roof_times.tied_us, 0);
}

TEST(RoofTimeIntervals, AClockAboveTheRoofsMakesItPerhapsFasterAndNeverSlower) {
    const Result result = known::result_of({{.compute = 0.5}}, known::gpu_roofs(), 0, 1250);
    EXPECT_EQ(roof_times_of(result).at({})->run_us, (Interval{50, 40, 50}));
}

/// 50 us of FLOPs of the model, and a count of 49.5 us that may err by 2 %.
TEST(RoofTimeSums, TheLongestReachesAsFarAsAnyDemandMay) {
    const Interval longest = breakdown_of(known::result_of({{.compute = 0.5, .l2 = 0.495}})).roof_times.longest_us;
    EXPECT_NEAR(longest.value, 50, 1e-9);
    EXPECT_NEAR(longest.low, 50, 1e-9);
    EXPECT_NEAR(longest.high, 49.5 * 1.02, 1e-9);
}

TEST(RoofTimeSums, OfEqualOnesTheSlowerMemoryStandsFirst) {
    const TimeBreakdown breakdown = breakdown_of(known::result_of({{.dram = 0.5, .l2 = 0.5, .l1 = 0.5}}));
    EXPECT_EQ(breakdown.roof_times.by_roof.at(0).name, "DRAM");
    EXPECT_EQ(breakdown.roof_times.by_roof.at(1).name, "L2");
}

const Step of_units{.shared = 0.5, .special = 0.2, .load_store = 0.05};

TEST(UnitRoofTimes, StandLongestFirstAtTheRunsClock) {
    const Result result = known::result_of({of_units}, known::gpu_roofs(), 0, 800);
    const std::vector<RoofTime> roof_times = roof_times_of(result).units;
    ASSERT_EQ(roof_times.size(), 3U);
    EXPECT_EQ(roof_times[0].roof.ceiling, "shared_read");
    EXPECT_NEAR(roof_times[0].us, 50, 1e-9);
    EXPECT_NEAR(roof_times[0].run_us.value, 62.5, 1e-9);
    EXPECT_NEAR(roof_times[0].run_us.low, 62.5 * 0.98, 0.1) << "two counts are apart by 2 %";
    EXPECT_EQ(roof_times[0].origin, Origin::measured);
    EXPECT_EQ(roof_times[1].roof.ceiling, "special");
    EXPECT_NEAR(roof_times[1].us, 20, 1e-9);
    EXPECT_EQ(roof_times[2].roof.ceiling, "load_store");
    EXPECT_NEAR(roof_times[2].us, 5, 1e-9);
}

TEST(UnitRoofTimes, AreNoneWithoutCountsOrRoofs) {
    const Result nobody_counted = known::result_of({{.compute = 0.5}});
    EXPECT_TRUE(roof_times_of(nobody_counted).units.empty());
    CeilingRun older = known::gpu_roofs();
    for (const char* name : {"shared_read", "special", "load_store"}) older = known::without(older, name);
    EXPECT_TRUE(roof_times_of(known::result_of({of_units}, older)).units.empty());
}

TEST(UnitRoofTimes, TieWithTheOthersAndCountAmongTheLongest) {
    const TimeBreakdown tied = breakdown_of(known::result_of({{.op = "gemm", .compute = 0.49, .shared = 0.5}}));
    EXPECT_EQ(tied.roof_times.tied_us, 100);
    EXPECT_NEAR(tied.roof_times.longest_us.value, 50, 1e-9);
    const TimeBreakdown apart = breakdown_of(known::result_of({{.op = "gemm", .compute = 0.4, .shared = 0.5}}));
    EXPECT_EQ(apart.roof_times.tied_us, 0);
    ASSERT_NE(apart.roof_times.longest(), nullptr);
    EXPECT_EQ(apart.roof_times.longest()->name, "shared memory");
}

TEST(RoofTimeSums, UnitsAreBusyForTheirPartOfTheActiveTime) {
    Result result = known::result_of({{.active = 0.5, .units = {{"pipe_lsu", 60}, {"l2_lookups", 40}}}});
    const TimeBreakdown breakdown = breakdown_of(result);
    ASSERT_NE(named(breakdown.roof_times, "load-store unit", true), nullptr);
    EXPECT_NEAR(named(breakdown.roof_times, "load-store unit", true)->us.value, 30, 1e-9);
    EXPECT_NEAR(named(breakdown.roof_times, "L2", true)->us.value, 40, 1e-9) << "of all cycles";
    const RoofTimeSum* l2_demand = named(breakdown.roof_times, "L2");
    ASSERT_NE(l2_demand, nullptr) << "the roof time is another figure";
    EXPECT_EQ(l2_demand->us.value, 0);
    result = known::result_of({{.counted = false}});
    EXPECT_EQ(named(breakdown_of(result).roof_times, "load-store unit", true), nullptr);
}

}  // namespace
}  // namespace kbench
