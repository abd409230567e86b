// What taking SMs away says, on made-up points whose nature is known, and on their opposites.
#include "analysis/explain/elasticity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int all = 132;

/// A step's time on so many SMs, at this clock over that on all of them.
using TimeOn = std::function<double(int multiprocessors, double clock)>;

double in_proportion(int multiprocessors, double clock) { return 100.0 * all / multiprocessors / clock; }
double unchanged(int, double) { return 100; }

struct Made {
    double spread = 0.005;  ///< half an interval, of the time
    std::vector<double> clocks{1, 1.02, 1.05, 1.08};
    std::int64_t blocks = 1000;
};

Point point_of(const std::vector<std::pair<std::string, TimeOn>>& steps, const Made& made = {}) {
    Point point;
    for (const auto& [op, time] : steps) {
        StepResult& step = point.steps.emplace_back();
        step.op = op;
        step.layer = "h.0." + op;
        KernelResult& kernel = step.kernels.emplace_back();
        kernel.time_us = time(all, 1);
        kernel.grid = {made.blocks, 1, 1};
    }
    SmScaling& scaling = point.sm_scaling.emplace();
    const int counts[] = {all, 96, 64, 32};
    for (std::size_t i = 0; i < 4; ++i) {
        SmCountRun& run = scaling.runs.emplace_back();
        run.multiprocessors = counts[i];
        run.sm_clock_mhz = Quantity::measured(1700 * made.clocks[i]);
        for (const auto& [op, time] : steps) {
            const double us = time(counts[i], made.clocks[i]);
            run.step_us.push_back(us);
            run.step_low_us.push_back(us * (1 - made.spread));
            run.step_high_us.push_back(us * (1 + made.spread));
        }
    }
    return point;
}

SmElasticity elasticity_of_point(const Point& point) { return sm_elasticity(make_facts(point, {})); }

SmGroup only(const TimeOn& time, const Made& made = {}) {
    return elasticity_of_point(point_of({{"op", time}}, made)).by_op.at(0);
}
SmFinding finding(const TimeOn& time, const Made& made = {}) { return only(time, made).finding; }

TEST(Elasticity, IsOneInProportionAndZeroWithoutChange) {
    EXPECT_DOUBLE_EQ(elasticity_of(Interval::exactly(10), Interval::exactly(20), 64, 32).value, 1);
    EXPECT_DOUBLE_EQ(elasticity_of(Interval::exactly(10), Interval::exactly(10), 64, 32).value, 0);
    const Interval wide = elasticity_of({10, 9, 11}, {20, 18, 22}, 64, 32);
    EXPECT_DOUBLE_EQ(wide.low, std::log2(18.0 / 11));
    EXPECT_DOUBLE_EQ(wide.high, std::log2(22.0 / 9));
}

TEST(Elasticity, TheClockIsDividedOutOfWorkOfSms) {
    for (const SmEffect& effect : only(in_proportion).effects) {
        EXPECT_NEAR(effect.at_equal_clocks.value, 1, 1e-9) << effect.multiprocessors;
        EXPECT_LT(effect.as_timed.value, 0.97) << "a higher clock made it shorter";
        EXPECT_LE(effect.low(), effect.as_timed.low);
    }
    EXPECT_EQ(finding(in_proportion), SmFinding::binds);
}

TEST(Elasticity, ACopyThatKeepsItsTimeIsNotBoundBySmsWhateverTheClockDoes) {
    for (const double rise : {0.0, 0.02, 0.1})
        EXPECT_EQ(finding(unchanged, {.clocks = {1, 1 + rise, 1 + rise, 1 + rise}}), SmFinding::does_not_bind) << rise;
}

/// What DRAM binds on all SMs is bound by what SMs can ask for when there are few.
TEST(Elasticity, OnlyTheNearestNumbersOfSmsDecide) {
    const std::map<int, double> copy{{132, 545}, {96, 548}, {64, 598}, {32, 785}};  // 1 GiB on an H200
    const std::map<int, double> gemm{{132, 177}, {96, 243}, {64, 365}, {32, 730}};
    EXPECT_EQ(finding([&](int n, double) { return copy.at(n); }), SmFinding::does_not_bind);
    EXPECT_EQ(finding([&](int n, double clock) { return gemm.at(n) / clock; }), SmFinding::binds);
    const auto then_bound = [](int n, double) { return n == 32 ? 400.0 : 100.0; };
    EXPECT_EQ(finding(then_bound), SmFinding::does_not_bind);
}

TEST(Elasticity, WhatStopsSlowingFartherAwayIsBoundAllTheSame) {
    EXPECT_EQ(finding([](int n, double) { return 100.0 * all / std::max(n, 64); }), SmFinding::binds);
}

/// The planted opposite: it moves bytes like a copy, and is slower with every SM that is taken away.
TEST(Elasticity, ABandwidthBoundStepThatSlowsInProportionIsNotCalledIndependent) {
    Point point = point_of({{"copy", in_proportion}});
    point.steps[0].cost.bytes_read[0] = 1e9;
    const SmGroup group = elasticity_of_point(point).by_op.at(0);
    EXPECT_EQ(group.finding, SmFinding::binds);
    EXPECT_THAT(sentence(group, all), Not(HasSubstr("do not bind")));
    const auto slows_soon = [](int n, double) { return n == all ? 100.0 : 100.0 * 96 / n * 1.3; };
    EXPECT_NE(finding(slows_soon), SmFinding::does_not_bind);
}

TEST(Elasticity, AStepThatStopsSlowingIsNotCalledBound) {
    EXPECT_NE(finding([](int n, double) { return n == all ? 100.0 : 137.5; }), SmFinding::binds);
    EXPECT_NE(finding([](int n, double) { return n >= 96 ? 100.0 : 100.0 * all / n; }), SmFinding::binds);
}

TEST(Elasticity, HalfOfEachIsBoundInPart) {
    const auto half = [](int n, double) { return 50 + 50.0 * all / n; };
    EXPECT_EQ(finding(half, {.clocks = {1, 1, 1, 1}}), SmFinding::binds_partly);
    EXPECT_THAT(sentence(only(half, {.clocks = {1, 1, 1, 1}}), all), HasSubstr("a part of its time"));
}

TEST(Elasticity, WideSpreadDecidesNothing) {
    for (const TimeOn& time : {TimeOn(in_proportion), TimeOn(unchanged)})
        EXPECT_EQ(finding(time, {.spread = 0.15}), SmFinding::cannot_tell);
}

/// As much time on fewer SMs and a clock that is higher in proportion: work of SMs, or not; nobody can tell.
TEST(Elasticity, AClockThatMakesUpForTheSmsDecidesNothing) {
    const Made made{.clocks = {1, 132.0 / 96, 132.0 / 64, 132.0 / 32}};
    EXPECT_EQ(finding(in_proportion, made), SmFinding::cannot_tell);
    EXPECT_EQ(finding(unchanged, made), SmFinding::cannot_tell);
    EXPECT_THAT(only(in_proportion, made).effects[0].as_timed.value, testing::DoubleNear(0, 1e-9));
}

TEST(Elasticity, AnUnknownClockIsNotDividedOut) {
    Point point = point_of({{"gemm", in_proportion}});
    for (SmCountRun& run : point.sm_scaling->runs) run.sm_clock_mhz = Quantity::unavailable("no NVML");
    const SmElasticity unknown = elasticity_of_point(point);
    EXPECT_THAT(unknown.clock_ratios, testing::Each(0));
    EXPECT_EQ(unknown.by_op[0].effects[0].at_equal_clocks, unknown.by_op[0].effects[0].as_timed);
}

TEST(Elasticity, AMoreThanProportionalStepIsOneWaveMore) {
    const auto persistent = [](int n, double clock) { return n == all ? 100.0 : 200.0 * 96 / n / clock; };
    EXPECT_THAT(sentence(only(persistent), all), HasSubstr("need a wave more"));
}

TEST(Elasticity, AGridThatFitsOnTheSmsLeftSaysSo) {
    EXPECT_THAT(sentence(only(unchanged, {.blocks = 64}), all), HasSubstr("no more blocks than SMs were left"));
    EXPECT_THAT(sentence(only(unchanged, {.blocks = 97}), all), HasSubstr("SMs are not its bottleneck. DRAM, L2"));
}

TEST(Elasticity, AGridThatFitsSaysSoWhereItHasMostOfTheTime) {
    const auto says_so = [](double few_us) {
        Point point = point_of({{"op", unchanged}}, {.blocks = 64});
        point.steps[0].kernels[0].time_us = few_us;
        KernelResult& filling = point.steps[0].kernels.emplace_back();
        filling.time_us = 100 - few_us;
        filling.grid = {10, 10, 10};
        return elasticity_of_point(point).by_op[0].fills_few;
    };
    EXPECT_TRUE(says_so(51));
    EXPECT_FALSE(says_so(49));
    for (const std::size_t way : {0u, 1u, 2u}) {
        Point point = point_of({{"op", unchanged}}, {.blocks = 1});
        point.steps[0].kernels[0].grid[way] = 97;
        EXPECT_FALSE(elasticity_of_point(point).by_op[0].fills_few) << way;
    }
}

TEST(Elasticity, StepsAreSummedByOpKindAndLayer) {
    Point point = point_of({{"gemm", in_proportion}, {"copy", unchanged}, {"gemm", in_proportion}});
    point.steps[2].layer = "h.1.gemm";
    const SmElasticity sums = elasticity_of_point(point);
    ASSERT_EQ(sums.by_op.size(), 2u);
    EXPECT_EQ(sums.by_op[0].name, "gemm");
    EXPECT_EQ(sums.by_op[0].steps, 2u);
    EXPECT_DOUBLE_EQ(sums.by_op[0].us.value, 200);
    EXPECT_EQ(sums.by_layer[0].name, "h.*.gemm");
    EXPECT_EQ(sums.steps.size(), 3u);
    EXPECT_DOUBLE_EQ(sums.model->us.value, 300);
}

TEST(Elasticity, StepsWithoutKernelsAreLeftOut) {
    Point point = point_of({{"gemm", in_proportion}, {"fill", unchanged}});
    for (SmCountRun& run : point.sm_scaling->runs) run.step_us[1] = run.step_low_us[1] = run.step_high_us[1] = 0;
    EXPECT_EQ(elasticity_of_point(point).by_op.size(), 1u);
    for (SmCountRun& run : point.sm_scaling->runs) run.step_low_us[0] = 0;
    EXPECT_THAT(elasticity_of_point(point).unavailable, HasSubstr("no step ran kernels"));
}

Section section_of(SmElasticity elasticity, Point point = {}) {
    Result result;
    result.points.push_back(std::move(point));
    Explanation explanation;
    explanation.elasticity = std::move(elasticity);
    const ExplainedResult explained(result, {std::move(explanation)});
    return section_called("elasticity", {explained});
}

TEST(Elasticity, WhatDoesNotFitThePointIsRefused) {
    EXPECT_THAT(elasticity_of_point({}).unavailable, IsEmpty()) << "not asked for";
    EXPECT_TRUE(section_of(elasticity_of_point({})).empty());
    Point fewer = point_of({{"gemm", in_proportion}});
    fewer.sm_scaling->runs[1].step_us.clear();
    EXPECT_THAT(elasticity_of_point(fewer).unavailable, HasSubstr("not of the point's steps"));
    Point rising = point_of({{"gemm", in_proportion}});
    std::swap(rising.sm_scaling->runs[0], rising.sm_scaling->runs[1]);
    EXPECT_THAT(elasticity_of_point(rising).unavailable, HasSubstr("not of the point's steps"));
    Point undivided = point_of({{"gemm", in_proportion}});
    undivided.sm_scaling->runs.resize(1);
    EXPECT_THAT(elasticity_of_point(undivided).unavailable, HasSubstr("not divided"));
    Point old = point_of({{"gemm", in_proportion}});
    old.sm_scaling = SmScaling{"the driver has no cuGreenCtxCreate: it is older than CUDA 12.4", {}, ""};
    EXPECT_THAT(render_terminal({"", {section_of(elasticity_of_point(old))}}, 100), HasSubstr("older than CUDA 12.4"));
    Point ended = point_of({{"gemm", in_proportion}});
    ended.sm_scaling->ended = "on 32 SMs: 64 blocks must run at once";
    EXPECT_THAT(render_terminal({"", {section_of(elasticity_of_point(ended), ended)}}, 100),
                HasSubstr("Fewer were not measured; on 32 SMs: 64 blocks must run at once."));
}

/// The same facts of a CPU, in its words.
TEST(Elasticity, ACpuHasThreads) {
    Point point = point_of({{"gemm", in_proportion}, {"copy", unchanged}, {"half", [](int n, double clock) {
                                                                               return 50 + in_proportion(n, clock) / 2;
                                                                           }}});
    point.set("backend", "cpu");
    const SmElasticity made = elasticity_of_point(point);
    EXPECT_EQ(made.workers, Workers::threads);
    const std::string text = render_terminal({"", {section_of(made)}}, 200);
    for (const char* part :
         {"Time against threads", "+2.0 % on 96 threads", "gemm slows down as threads are taken away",
          "on 96 of 132 threads", "what every core has of its own",
          "threads are not its bottleneck. DRAM, the last-level cache",
          "threads are the bottleneck of a part of its time"})
        EXPECT_THAT(text, HasSubstr(part));
    for (const char* part : {"SM", "kernel recorded", "launches and gaps"}) EXPECT_THAT(text, Not(HasSubstr(part)));
    Point of_two = point;
    of_two.sm_scaling->runs.resize(2);
    of_two.sm_scaling->runs[0].multiprocessors = 2;
    of_two.sm_scaling->runs[1].multiprocessors = 1;
    EXPECT_THAT(render_terminal({"", {section_of(elasticity_of_point(of_two))}}, 200), HasSubstr("% on 1 thread,"));
    for (SmCountRun& run : point.sm_scaling->runs) run.sm_clock_mhz = Quantity::unavailable("no cpufreq");
    EXPECT_THAT(render_terminal({"", {section_of(elasticity_of_point(point))}}, 200), HasSubstr("Their clock was not"));
    point.sm_scaling->runs.resize(1);
    EXPECT_THAT(elasticity_of_point(point).unavailable, HasSubstr("fewer threads"));
}

TEST(Elasticity, TheSectionHasATableASentenceAnOpAndItsLimits) {
    const SmElasticity made = elasticity_of_point(point_of({{"gemm", in_proportion}, {"copy", unchanged}}));
    const std::string text = render_terminal({"", {section_of(made)}}, 200);
    for (const char* part : {"Time against SMs", "+2.0 % on 96 SMs", "elasticity on 96", "copy did not slow down",
                             "gemm slows down as SMs are taken away", "By layer", "What it cannot tell"})
        EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace kbench
