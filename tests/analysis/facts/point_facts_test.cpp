// Times and clocks of a step, and what was done to the SMs.
#include "analysis/facts/point_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

StepFacts facts_at(const StepResult& step, double mhz) {
    PointFacts run;
    run.clock_mhz = Interval::exactly(mhz);
    return make_step_facts(step, run);
}

TEST(DeviceInterval, IsTheStepRunsInProportionToTheKernels) {
    StepResult step;
    step.time_us = summarise(std::vector<double>{100});
    step.time_us->ci_low = 98;
    step.time_us->ci_high = 103;
    EXPECT_EQ(device_interval(step), (Interval{100, 98, 103}));
    step.kernels.emplace_back().time_us = 50;
    EXPECT_EQ(device_interval(step), (Interval{50, 49, 51.5}));
    step.time_us = Summary{};
    step.time_us->median = 0.5;
    step.time_us->ci_low = 0.25;
    step.time_us->ci_high = 1;
    EXPECT_EQ(device_interval(step), (Interval{50, 25, 100}));
    step.time_us->median = 0;
    EXPECT_EQ(device_interval(step), Interval::exactly(50)) << "of no proportion";
    step.time_us.reset();
    EXPECT_EQ(device_interval(step), Interval::exactly(50));
    step.kernels.clear();
    EXPECT_EQ(device_interval(step), Interval{});
}

TEST(SmActive, IsCyclesAtTheRunsClockOverTheKernelsTime) {
    // A range of 40 us and 60,000 cycles around a kernel of 10 us.
    StepResult step;
    step.counters = {{"smsp_active", 20}, {"sm_cycles_active", 12000}, {"sm_cycles_elapsed", 60000}, {"time", 40000}};
    EXPECT_EQ(facts_at(step, 1600).active_pct(), std::nullopt) << "no time";
    EXPECT_DOUBLE_EQ(facts_at(step, 1600).clock_mhz.value, 1500) << "it was counted at a lower one";
    EXPECT_DOUBLE_EQ(facts_at(step, 1200).clock_mhz.value, 1200);
    EXPECT_DOUBLE_EQ(facts_at(step, 0).clock_mhz.value, 1500);
    EXPECT_DOUBLE_EQ(facts_at(StepResult(), 1600).clock_mhz.value, 1600);
    step.time_us = summarise(std::vector<double>{12});
    EXPECT_NEAR(facts_at(step, 1600).active_pct().value(), 66.667, 1e-3) << "8 of 12 us between events";
    step.kernels.resize(2);
    step.kernels[0].time_us = 4;
    step.kernels[1].time_us = 6;
    step.kernels[1].gap_us = 1;
    EXPECT_DOUBLE_EQ(facts_at(step, 1600).active_pct().value(), 80) << "gaps are not the kernels' time";
    EXPECT_DOUBLE_EQ(facts_at(step, 0).active_pct().value(), 80) << "at the counter run's 1,500 MHz";
    EXPECT_DOUBLE_EQ(facts_at(step, 1250).clock_mhz.value, 1250) << "12,000 cycles last 9.6 of 10 us";
    EXPECT_DOUBLE_EQ(facts_at(step, 1100).clock_mhz.value, 1500) << "they would last 10.9";
    EXPECT_DOUBLE_EQ(facts_at(step, 1100).active_pct().value(), 80);
    step.counters["sm_cycles_elapsed"] = 36000;
    EXPECT_DOUBLE_EQ(facts_at(step, 1000).active_pct().value(), 100) << "never more, whatever was counted";
    step.counters.erase("sm_cycles_active");
    EXPECT_EQ(facts_at(step, 1600).active_pct(), std::nullopt);
}

TEST(StepClock, HoldsTheRunsBlocksAndTheCount) {
    Point point;
    point.conditions.sm_clock_mhz = Quantity::measured(1000);
    point.conditions.blocks = {{1, 0.1, 980, 4}, {2, 0.1, 1025, 4}};
    StepResult& step = point.steps.emplace_back();
    step.time_us = summarise(std::vector<double>{100});
    step.counters = {{"sm_cycles_elapsed", 93e3}, {"time", 100e3}};
    const StepFacts facts = make_facts(point, {}).steps.at(0);
    EXPECT_EQ(facts.clock_mhz, (Interval{930, 930, 1025}));
    EXPECT_NEAR(facts.clock_error, 1025.0 / 930 - 1, 1e-9);
}

/// A point of two blocks of a GEMM and a norm at a mean of 1,800 MHz; the counter run's clock was 1,700.
Point clocked_point() {
    Point point;
    point.set("backend", "cuda");
    point.conditions.sm_clock_mhz = Quantity::measured(1800);
    point.conditions.blocks = {{1, 0.1, 1782, 4}, {2, 0.1, 1818, 4}};
    for (const char* block : {"h.0.", "h.1."})
        for (const char* op : {"gemm", "layernorm"}) {
            StepResult& step = point.steps.emplace_back();
            step.layer = std::string(block) + op;
            step.op = op;
            step.kernels.emplace_back().time_us = 100;
            step.counters = {{"sm_cycles_active", 80e3}, {"sm_cycles_elapsed", 170e3}, {"time", 100e3}};
        }
    return point;
}

TEST(GraphClock, OfTheSmsThemselvesComesBeforeNvmlsAndTheCounters) {
    Point point = clocked_point();
    EXPECT_DOUBLE_EQ(make_facts(point, {}).steps[0].clock_mhz.value, 1700);
    point.graph_clock.emplace().step_mhz = {1500, 1900, 1520, 0};
    const PointFacts facts = make_facts(point, {});
    EXPECT_DOUBLE_EQ(facts.steps[0].clock_mhz.value, 1500);
    EXPECT_DOUBLE_EQ(facts.steps[2].clock_mhz.value, 1520);
    EXPECT_DOUBLE_EQ(facts.steps[1].clock_mhz.value, 1900);
    EXPECT_DOUBLE_EQ(facts.steps[3].clock_mhz.value, 1900) << "of the steps of its name that were read";
    EXPECT_DOUBLE_EQ(facts.steps[0].active_us.value(), 80e3 / 1500);
}

TEST(GraphClock, HoldsItsNamesReadingsAndTheMovementOfTheRun) {
    Point point = clocked_point();
    point.graph_clock.emplace().step_mhz = {1500, 1900, 1520, 0};
    const StepFacts gemm = make_facts(point, {}).steps[0];
    EXPECT_NEAR(gemm.clock_mhz.low, 1500 * 0.99, 1e-9);
    EXPECT_NEAR(gemm.clock_mhz.high, 1520 * 1.01, 1e-9);
    EXPECT_NEAR(gemm.clock_error, 1520 * 1.01 / 1500 - 1, 1e-9);
    point.conditions.sm_clock_mhz = Quantity::unavailable("no NVML");
    EXPECT_EQ(make_facts(point, {}).steps[0].clock_mhz, (Interval{1500, 1500, 1520})) << "its own readings remain";
}

TEST(GraphClock, ThatIsNotOfThePointsStepsIsNotUsed) {
    Point point = clocked_point();
    point.graph_clock.emplace().step_mhz = {1500, 1900};
    EXPECT_DOUBLE_EQ(make_facts(point, {}).steps[0].clock_mhz.value, 1700);
    point.graph_clock = GraphClock{.unavailable = "the forward is too short", .step_mhz = {}};
    EXPECT_DOUBLE_EQ(make_facts(point, {}).steps[0].clock_mhz.value, 1700);
    point.graph_clock->step_mhz = {0, 0, 0, 0};
    EXPECT_DOUBLE_EQ(make_facts(point, {}).steps[0].clock_mhz.value, 1700);
}

/// Means of steps add up to the mean of the whole, medians do not.
TEST(StepTimes, WithoutRecordsAreMeansAndMedians) {
    StepResult step;
    step.time_us = summarise(std::vector<double>{10, 10, 16});
    const StepFacts facts = make_step_facts(step);
    EXPECT_DOUBLE_EQ(facts.time_us, 12);
    EXPECT_DOUBLE_EQ(facts.kernels_us, 12);
    EXPECT_DOUBLE_EQ(facts.device_us.value, 10);
}

TEST(SmTimes, AreThoseOfThePointsSteps) {
    Point point;
    point.steps.resize(1);
    SmScaling& scaling = point.sm_scaling.emplace();
    for (const int multiprocessors : {132, 66}) {
        SmCountRun& run = scaling.runs.emplace_back();
        run.multiprocessors = multiprocessors;
        run.step_us = {1320.0 / multiprocessors};
        run.step_low_us = run.step_high_us = run.step_us;
        run.sm_clock_mhz = Quantity::measured(multiprocessors == 132 ? 1500 : 1650);
    }
    PointFacts facts = make_facts(point, {});
    ASSERT_EQ(facts.sm_times.size(), 2u);
    EXPECT_DOUBLE_EQ(facts.sm_times[1].clock_ratio, 1.1);
    EXPECT_EQ(facts.sm_times[1].step_us.at(0), Interval::exactly(20));
    point.steps.resize(2);
    facts = make_facts(point, {});
    EXPECT_TRUE(facts.sm_times.empty());
    EXPECT_THAT(facts.sm_times_unavailable, testing::HasSubstr("not of the point's steps"));
}

TEST(TheftTimes, AreThoseOfThePointsSteps) {
    Point point;
    point.steps.resize(1);
    BandwidthTheft& theft = point.theft.emplace();
    for (const char* takes : {"nothing", "compute", "dram"}) {
        ThiefRun& run = theft.runs.emplace_back();
        run.takes = takes;
        run.multiprocessors = 112;
        run.step_us = run.step_low_us = run.step_high_us = {10};
    }
    theft.runs[2].share = 0.3;
    theft.runs[2].sm_clock_mhz = Quantity::measured(1700);
    PointFacts facts = make_facts(point, {});
    ASSERT_EQ(facts.theft_times.size(), 3u);
    EXPECT_EQ(facts.theft_multiprocessors, 112);
    EXPECT_EQ(facts.theft_times[1].taken, Taken::compute);
    EXPECT_EQ(facts.theft_times[2].taken, Taken::dram);
    EXPECT_DOUBLE_EQ(facts.theft_times[2].share, 0.3);
    EXPECT_DOUBLE_EQ(facts.theft_times[2].clock_mhz, 1700);
    EXPECT_EQ(facts.theft_times[2].step_us.at(0), Interval::exactly(10));
    point.steps.resize(2);
    facts = make_facts(point, {});
    EXPECT_TRUE(facts.theft_times.empty());
    EXPECT_THAT(facts.theft_unavailable, testing::HasSubstr("not of the point's steps"));
}

}  // namespace
}  // namespace kbench
