// Demands on numbers made by hand. The machine of known_points.h: a microsecond is 1000 cycles, 10^6 bytes of DRAM,
// 4 10^6 of L2, 10^7 of L1, 10^7 FLOPs on plain cores and 10^8 on tensor cores.
#include "analysis/explain/roof_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/time_breakdown.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::ledger_of, known::Step;

/// Those of the only step.
StepDemands demands_of(const Result& result) { return known::accounts_of(result).demands.at(0); }

double run_us(const Step& step, std::optional<Level> level, double clock_mhz) {
    Result result = known::result_of({step}, known::gpu_roofs(), 0, clock_mhz);
    const StepDemands demands = demands_of(result);
    const Demand* demand = demands.at(level);
    return demand == nullptr ? -1 : demand->run_us.value;
}

/// The unit's demand of a step, and what of it is work beyond the model's.
std::pair<double, double> unit_us(const Result& result) {
    const StepDemands demands = demands_of(result);
    const Demand* demand = demands.at({});
    if (demand == nullptr) return {-1, -1};
    return {demand->run_us.value, demand->extra_work / demand->roof.per_s * 1e6};
}

TEST(Demands, StandLongestFirstWithWorkAndOrigin) {
    Result result =
        known::result_of({{.op = "gemm", .compute = 0.5, .dram = 0.3, .l2 = 0.4, .l1 = 0.1, .executed = 0.02}},
                         known::gpu_roofs(), 0, 800);
    const StepDemands of_step = demands_of(result);
    const std::vector<Demand>& demands = of_step.work;
    ASSERT_EQ(demands.size(), 4);
    EXPECT_EQ(demands[0].level, std::nullopt);
    EXPECT_EQ(demands[0].roof.ceiling, "fp16_tensor");
    EXPECT_EQ(demands[0].origin, Origin::derived);
    EXPECT_NEAR(demands[0].work, 50 * known::tensor_flops, 1);
    EXPECT_NEAR(demands[0].us, 50, 1e-9);
    EXPECT_NEAR(demands[0].run_us.value, 65, 1e-9);  // (50 + 2) / 0.8
    EXPECT_EQ(demands[1].level, Level::l2);
    EXPECT_NEAR(demands[1].work, 40 * known::l2_bytes, 1);
    EXPECT_EQ(demands[2].level, Level::dram);
    EXPECT_EQ(demands[2].origin, Origin::measured);
    EXPECT_EQ(demands[3].level, Level::l1);
    EXPECT_NEAR(demands[3].run_us.value, 12.5, 1e-9);
    EXPECT_NEAR(of_step.binding_share(100), 0.5, 1e-9);
}

TEST(Demands, OnTheChipFollowTheRunsClock) {
    EXPECT_NEAR(run_us({.compute = 0.5, .issue = 0.4}, {}, 800), 62.5, 1e-9);
    EXPECT_NEAR(run_us({.l1 = 0.5}, Level::l1, 800), 62.5, 1e-9);
    EXPECT_NEAR(run_us({.l2 = 0.5}, Level::l2, 800), 50, 1e-9);
    EXPECT_NEAR(run_us({.dram = 0.5}, Level::dram, 800), 50, 1e-9);
    EXPECT_NEAR(run_us({.compute = 0.5, .issue = 0.5}, {}, 1250), 50, 1e-9) << "no faster than the roof was measured";
    EXPECT_NEAR(run_us({.compute = 0.5}, {}, 0), 50, 1e-9) << "no clock was read";
}

TEST(Demands, TheLongestIsThatOfTheRun) {
    // Compute 50 us and DRAM 55 at the roofs' clocks; at 800 MHz compute has 62.5.
    Result result = known::result_of({{.compute = 0.5, .dram = 0.55}}, known::gpu_roofs(), 0, 800);
    EXPECT_EQ(demands_of(result).binding()->level, std::nullopt);
    result = known::result_of({{.compute = 0.5, .dram = 0.55}});
    EXPECT_EQ(demands_of(result).binding()->level, Level::dram);
}

TEST(Demands, ReadsAndWritesOfDramAddUp) {
    Result result = known::result_of({{}});
    result.points[0].steps[0].counters["dram_read_bytes"] = 20e6;
    result.points[0].steps[0].counters["dram_write_bytes"] = 15e6;
    EXPECT_NEAR(demands_of(result).at(Level::dram)->us, 35, 1e-9);
}

TEST(Demands, ExtraWorkIsWhatWasExecutedBeyondTheModel) {
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

TEST(Demands, WhatComputesInFp32IsComparedWithFp32) {
    // A layer norm of fp16 data: 500 10^6 FLOPs are 50 us on plain cores; 300 10^6 FFMA are 60.
    Result result = known::result_of({{.precision = Precision::fp16, .compute = 0.5, .issue = 0.5}});
    StepResult& norm = result.points[0].steps[0];
    norm.counters.insert({{"sass_fadd", 0}, {"sass_fmul", 0}, {"sass_ffma", 300e6}, {"tensor_fp16_ops", 0}});
    EXPECT_THAT(unit_us(result), testing::Pair(testing::DoubleNear(60, 1e-9), testing::DoubleNear(10, 1e-9)));
}

TEST(Demands, WhatThisKbenchDoesNotKnowIsComparedWithTheUnitThatItRanOn) {
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

TEST(Demands, KernelsWithMmaSyncHaveARoofOfTheirOwn) {
    CeilingRun roofs = known::gpu_roofs();
    roofs.ceilings.push_back(known::ceiling("fp16_mma_sync", 50));  // half of wgmma's
    Result result = known::result_of({{.op = "gemm", .compute = 0.3}}, roofs);
    auto& counters = result.points[0].steps[0].counters;
    const auto roof = [&] { return demands_of(result).binding()->roof.ceiling; };
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

TEST(Demands, ACountedZeroIsKnownAndBindsNothing) {
    Result result = known::result_of({{}});
    const known::Accounts accounts = known::accounts_of(result);
    EXPECT_EQ(accounts.demands[0].work.size(), 3);  // the levels; no FLOPs
    EXPECT_EQ(accounts.demands[0].binding(), nullptr);
    EXPECT_EQ(accounts.ledger.demands.longest(), nullptr);
}

TEST(Demands, WithoutCountersBytesAreTheModels) {
    Result result = known::result_of({{.compute = 0.3, .streaming = 0.4, .counted = false}});
    EXPECT_EQ(demands_of(result).binding()->origin, Origin::derived);
    result = known::result_of({{.compute = 0.5, .counted = false}});
    const StepDemands demands = demands_of(result);
    ASSERT_EQ(demands.work.size(), 1) << "no bytes in the model are no count";
    EXPECT_EQ(demands.work[0].level, std::nullopt);
}

TEST(Demands, OfARoofOfNothingAreNone) {
    CeilingRun roofs = known::without(known::gpu_roofs(), "l2_read");
    roofs.ceilings.push_back(known::ceiling("l2_read", 0));
    Result result = known::result_of({{.dram = 0.5, .l2 = 0.9}}, roofs);
    EXPECT_EQ(demands_of(result).work.size(), 2);
    result = known::result_of({{.dram = 0.5}}, {});
    EXPECT_EQ(ledger_of(result).roofs_unavailable, "nobody measured them");
    EXPECT_EQ(demands_of(result).binding(), nullptr);
    EXPECT_EQ(demands_of(result).binding_share(100), 0);
}

TEST(Demands, OfARoofWithoutAClockAreNotScaled) {
    CeilingRun roofs = known::without(known::gpu_roofs(), "fp32_plain");
    roofs.ceilings.push_back(known::ceiling("fp32_plain", 10, 0));
    Result result = known::result_of({{.compute = 0.5, .issue = 0.4}}, roofs, 0, 800);
    EXPECT_NEAR(unit_us(result).first, 50, 1e-9);
    EXPECT_NEAR(demands_of(result).at({})->run_us.low, 50, 1e-9);
}

TEST(Demands, EstimatedBytesOfACpuStayEstimated) {
    Result result = known::result_of({{.kernels = 0, .streaming = 0.2, .counted = false}}, known::cpu_roofs());
    Point& cpu = result.points[0];
    cpu.counters.metrics = {{"dram_read_bytes", "byte", "", Origin::estimated, "the cost model"}};
    cpu.steps[0].counters = {{"dram_read_bytes", 30e6}, {"dram_write_bytes", 10e6}, {"ipc", 2}};
    const StepDemands demands = demands_of(result);
    ASSERT_NE(demands.binding(), nullptr);
    EXPECT_EQ(demands.binding()->origin, Origin::estimated);
    EXPECT_NEAR(demands.binding()->us, 40, 1e-9);
}

TEST(DemandIntervals, ComeFromTheRoofTheClockAndTheCount) {
    CeilingRun roofs = known::gpu_roofs();
    for (Ceiling& ceiling : roofs.ceilings) {
        ceiling.low = 0.96 * ceiling.value.value.value();
        ceiling.high = 1.05 * ceiling.value.value.value();
    }
    Result result = known::result_of({{.compute = 0.5, .dram = 0.4, .l1 = 0.3}}, roofs, 0, 1000);
    result.points[0].conditions.blocks = {{1, 0.1, 980, 4}, {2, 0.1, 1025, 4}, {3, 0.1, std::nullopt, 0}};
    const known::Accounts accounts = known::accounts_of(result);
    const StepDemands& demands = accounts.demands[0];
    const Interval& unit = demands.at({})->run_us;  // FLOPs of the model are exact
    EXPECT_NEAR(unit.low, 50 / 1.05 / 1.025, 1e-6) << "but perhaps";
    EXPECT_NEAR(unit.high, 50 / 0.96 / 0.98, 1e-6);
    const Interval& dram = demands.at(Level::dram)->run_us;  // has a clock of its own
    EXPECT_NEAR(dram.low, 40 * 0.98 / 1.05, 1e-6);
    EXPECT_NEAR(dram.high, 40 * 1.02 / 0.96, 1e-6);
    const Interval& l1 = demands.at(Level::l1)->run_us;
    EXPECT_NEAR(l1.low, 30 * 0.98 / 1.05 / 1.025, 1e-6);
    EXPECT_NEAR(accounts.facts.steps[0].clock_error, 0.025, 1e-9);
    EXPECT_NEAR(accounts.ledger.demands.longest_us.high, unit.high, 1e-9);
}

/// mma.sync at its pipe's pace: NVML reads 7 % more than the SMs' own cycles tell.
TEST(DemandIntervals, TakeTheLowerClockAtWhichTheStepWasCounted) {
    Result result = known::result_of({{.compute = 0.5}}, known::gpu_roofs(), 0, 1000);
    result.points[0].steps[0].counters["sm_cycles_elapsed"] = 93e3;
    result.points[0].steps[0].counters["time"] = 100e3;
    const known::Accounts accounts = known::accounts_of(result);
    EXPECT_NEAR(accounts.demands[0].binding()->run_us.value, 50 / 0.93, 1e-6);
    EXPECT_NEAR(accounts.demands[0].binding()->run_us.low, 50, 1e-6);
    EXPECT_NEAR(accounts.cycles.steps[0].no_warp, 1 - 1 / 0.93, 1e-6) << "100,000 active cycles are 107.5 us";
    result.points[0].steps[0].counters["time"] = 80e3;  // counted faster, with less load
    EXPECT_NEAR(known::accounts_of(result).cycles.steps[0].no_warp, 0, 1e-6);
}

TEST(DemandIntervals, OfADatasheetsRoofAreItsValue) {
    CeilingRun roofs = known::gpu_roofs();
    for (Ceiling& ceiling : roofs.ceilings) ceiling.low = ceiling.high = 0;
    Result result = known::result_of({{.compute = 0.5}}, roofs);
    EXPECT_EQ(demands_of(result).binding()->run_us, Interval::exactly(50));
}

const DemandSum* named(const DemandSums& sums, std::string_view name, bool is_busy_time = false) {
    for (const DemandSum& sum : sums.by_roof)
        if (sum.name == name && sum.is_busy_time == is_busy_time) return &sum;
    return nullptr;
}

/// A layer whose two demands are as long, measured twice: a hair's difference must not move a third of the time.
TEST(DemandSums, OfTwoRunsThatTieAreAlike) {
    double shares[2][2];
    for (const int run : {0, 1}) {
        const double hair = run == 0 ? 0.001 : -0.001;
        Result result = known::result_of({{.compute = 0.54 + hair, .l2 = 0.54 - hair}, {.compute = 0.6, .l2 = 0.1}});
        const Ledger ledger = ledger_of(result);
        ASSERT_NE(named(ledger.demands, "fp32_plain"), nullptr);
        shares[run][0] = named(ledger.demands, "fp32_plain")->us.value;
        shares[run][1] = named(ledger.demands, "L2")->us.value;
        EXPECT_NEAR(ledger.demands.tied_us, 100, 1e-9) << "the first step";
        EXPECT_NEAR(ledger.demands.longest_us.value, 54.1 + 60, 1e-6);
    }
    EXPECT_NEAR(shares[0][0], shares[1][0], 0.5);
    EXPECT_NEAR(shares[0][1], shares[1][1], 0.5);
    EXPECT_NEAR(shares[0][0], 114, 0.2);
    EXPECT_NEAR(shares[0][1], 64, 0.2);
}

TEST(DemandSums, AStepWhoseDemandsAreApartIsNotTied) {
    Result result = known::result_of({{.compute = 0.6, .l2 = 0.5}, {.compute = 0.5}});
    EXPECT_EQ(ledger_of(result).demands.tied_us, 0);
}

TEST(DemandIntervals, AClockAboveTheRoofsMakesItPerhapsFasterAndNeverSlower) {
    const Result result = known::result_of({{.compute = 0.5}}, known::gpu_roofs(), 0, 1250);
    EXPECT_EQ(demands_of(result).at({})->run_us, (Interval{50, 40, 50}));
}

/// 50 us of FLOPs of the model, and a count of 49.5 us that may err by 2 %.
TEST(DemandSums, TheLongestReachesAsFarAsAnyDemandMay) {
    const Interval longest = ledger_of(known::result_of({{.compute = 0.5, .l2 = 0.495}})).demands.longest_us;
    EXPECT_NEAR(longest.value, 50, 1e-9);
    EXPECT_NEAR(longest.low, 50, 1e-9);
    EXPECT_NEAR(longest.high, 49.5 * 1.02, 1e-9);
}

TEST(DemandSums, OfEqualOnesTheSlowerMemoryStandsFirst) {
    const Ledger ledger = ledger_of(known::result_of({{.dram = 0.5, .l2 = 0.5, .l1 = 0.5}}));
    EXPECT_EQ(ledger.demands.by_roof.at(0).name, "DRAM");
    EXPECT_EQ(ledger.demands.by_roof.at(1).name, "L2");
}

const Step of_units{.shared = 0.5, .special = 0.2, .load_store = 0.05};

TEST(UnitDemands, StandLongestFirstAtTheRunsClock) {
    const Result result = known::result_of({of_units}, known::gpu_roofs(), 0, 800);
    const std::vector<Demand> demands = demands_of(result).units;
    ASSERT_EQ(demands.size(), 3U);
    EXPECT_EQ(demands[0].roof.ceiling, "shared_read");
    EXPECT_NEAR(demands[0].us, 50, 1e-9);
    EXPECT_NEAR(demands[0].run_us.value, 62.5, 1e-9);
    EXPECT_NEAR(demands[0].run_us.low, 62.5 * 0.98, 0.1) << "two counts are apart by 2 %";
    EXPECT_EQ(demands[0].origin, Origin::measured);
    EXPECT_EQ(demands[1].roof.ceiling, "special");
    EXPECT_NEAR(demands[1].us, 20, 1e-9);
    EXPECT_EQ(demands[2].roof.ceiling, "load_store");
    EXPECT_NEAR(demands[2].us, 5, 1e-9);
}

TEST(UnitDemands, AreNoneWithoutCountsOrRoofs) {
    const Result nobody_counted = known::result_of({{.compute = 0.5}});
    EXPECT_TRUE(demands_of(nobody_counted).units.empty());
    CeilingRun older = known::gpu_roofs();
    for (const char* name : {"shared_read", "special", "load_store"}) older = known::without(older, name);
    EXPECT_TRUE(demands_of(known::result_of({of_units}, older)).units.empty());
}

TEST(UnitDemands, TieWithTheOthersAndCountAmongTheLongest) {
    const Ledger tied = ledger_of(known::result_of({{.op = "gemm", .compute = 0.49, .shared = 0.5}}));
    EXPECT_EQ(tied.demands.tied_us, 100);
    EXPECT_NEAR(tied.demands.longest_us.value, 50, 1e-9);
    const Ledger apart = ledger_of(known::result_of({{.op = "gemm", .compute = 0.4, .shared = 0.5}}));
    EXPECT_EQ(apart.demands.tied_us, 0);
    ASSERT_NE(apart.demands.longest(), nullptr);
    EXPECT_EQ(apart.demands.longest()->name, "shared memory");
}

TEST(DemandSums, UnitsAreBusyForTheirPartOfTheActiveTime) {
    Result result = known::result_of({{.active = 0.5, .units = {{"pipe_lsu", 60}, {"l2_lookups", 40}}}});
    const Ledger ledger = ledger_of(result);
    ASSERT_NE(named(ledger.demands, "load-store unit", true), nullptr);
    EXPECT_NEAR(named(ledger.demands, "load-store unit", true)->us.value, 30, 1e-9);
    EXPECT_NEAR(named(ledger.demands, "L2", true)->us.value, 40, 1e-9) << "of all cycles";
    const DemandSum* l2_demand = named(ledger.demands, "L2");
    ASSERT_NE(l2_demand, nullptr) << "what the roof demands is another figure";
    EXPECT_EQ(l2_demand->us.value, 0);
    result = known::result_of({{.counted = false}});
    EXPECT_EQ(named(ledger_of(result).demands, "load-store unit", true), nullptr);
}

}  // namespace
}  // namespace kbench
