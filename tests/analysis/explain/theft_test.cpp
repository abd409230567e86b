// What taking bandwidth away says, on made-up points whose nature is known, and on their opposites.
#include "analysis/explain/theft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr double dram_roof = 3000, l2_roof = 6000;  // GB/s

/// What a thief leaves: shares of the roofs, and the SMs' clock over that of the work alone.
struct Left {
    double dram = 1, l2 = 1, clock = 1;
};
using TimeWith = std::function<double(const Left& left)>;

/// Work that uses all of a level's bandwidth, half of it, or none.
double of_dram(const Left& left) { return 100 / left.dram; }
double of_l2(const Left& left) { return 100 / left.l2; }
double of_sms(const Left& left) { return 100 / left.clock; }

struct MadeTheft {
    double spread = 0.002;  ///< half an interval, of the time
    double drift = 0;       ///< how much longer each run takes than the one before it
    /// The SMs' clock beside a thief that computes, and beside one that takes bandwidth, over that of the work alone.
    double computing_clock = 1, taking_clock = 1;
    std::vector<double> shares{0.3, 0.1, 0.2};
    bool takes_l2 = true;
};

void add_run(Point& point, const std::vector<std::pair<std::string, TimeWith>>& steps, const MadeTheft& made,
             std::string takes, double share) {
    BandwidthTheft& theft = *point.theft;
    Left left;
    if (takes == "dram") left.dram = 1 - share, left.l2 = 1 - share * dram_roof / l2_roof;
    if (takes == "l2") left.l2 = 1 - share;
    if (takes == "compute") left.clock = made.computing_clock;
    if (share > 0) left.clock = made.taking_clock;
    const double drifted = 1 + made.drift * static_cast<double>(theft.runs.size());
    ThiefRun& run = theft.runs.emplace_back();
    run.takes = std::move(takes);
    run.multiprocessors = 112;
    run.share = share;
    run.sm_clock_mhz = Quantity::measured(1700 * left.clock);
    run.launches = 20;
    for (const auto& [op, time] : steps) {
        const double us = time(left) * drifted;
        run.step_us.push_back(us);
        run.step_low_us.push_back(us * (1 - made.spread));
        run.step_high_us.push_back(us * (1 + made.spread));
        run.latency_ms += us * 1e-3;
    }
}

Point robbed(const std::vector<std::pair<std::string, TimeWith>>& steps, const MadeTheft& made = {}) {
    Point point;
    for (const auto& [op, time] : steps) {
        StepResult& step = point.steps.emplace_back();
        step.op = op;
        step.layer = "h.0." + op;
    }
    point.theft.emplace();
    add_run(point, steps, made, "nothing", 0);
    add_run(point, steps, made, "compute", 0);
    for (const double share : made.shares) {
        add_run(point, steps, made, "dram", share);
        if (made.takes_l2) add_run(point, steps, made, "l2", share);
    }
    add_run(point, steps, made, "compute", 0);
    return point;
}

Roofs known_roofs() {
    CeilingRun run;
    for (const auto& [name, gb_per_s] : {std::pair("dram_read", dram_roof), std::pair("l2_read", l2_roof)}) {
        Ceiling& ceiling = run.ceilings.emplace_back();
        ceiling.name = name;
        ceiling.value = Quantity::measured(gb_per_s);
    }
    return {run, "cuda"};
}

BandwidthElasticity theft_of(const Point& point) { return bandwidth_elasticity(make_facts(point, known_roofs())); }

TheftGroup robbed_group(const TimeWith& time, const MadeTheft& made = {}) {
    const BandwidthElasticity theft = theft_of(robbed({{"op", time}}, made));
    EXPECT_THAT(theft.unavailable, IsEmpty());
    return theft.by_op.at(0);
}

using Findings = std::pair<BandwidthFinding, BandwidthFinding>;
constexpr auto binds = BandwidthFinding::binds;
constexpr auto partly = BandwidthFinding::binds_partly;
constexpr auto does_not = BandwidthFinding::does_not_bind;
constexpr auto cannot_tell = BandwidthFinding::cannot_tell;

Findings findings(const TimeWith& time, const MadeTheft& made = {}) {
    const TheftGroup group = robbed_group(time, made);
    return {group.dram.finding, group.l2.finding};
}

TEST(Theft, WorkOfDramIsBoundByDramAlone) {
    const TheftGroup group = robbed_group(of_dram);
    EXPECT_NEAR(group.dram.elasticity->value, 1, 1e-9);
    EXPECT_NEAR(group.l2.elasticity->value, 0, 1e-9);
    EXPECT_EQ(findings(of_dram), Findings(binds, does_not));
    EXPECT_THAT(sentence(group, group.dram), HasSubstr("DRAM bandwidth is what binds: with 30 % of it taken away"));
}

/// DRAM's thief takes L2's bandwidth on the way: without taking that out L2's work would be at 0.46 of DRAM's.
TEST(Theft, WorkOfL2IsBoundByL2AloneThoughDramsThiefSlowsIt) {
    const TheftGroup group = robbed_group(of_l2);
    EXPECT_GT(group.dram.effects.back().ratio.value, 1.15);
    EXPECT_NEAR(group.dram.elasticity->value, 0, 1e-9);
    EXPECT_NEAR(group.l2.elasticity->value, 1, 1e-9);
    EXPECT_EQ(findings(of_l2), Findings(does_not, binds));
}

TEST(Theft, WorkOfSmsIsBoundByNeither) {
    EXPECT_EQ(findings(of_sms), Findings(does_not, does_not));
    const TheftGroup group = robbed_group(of_sms);
    EXPECT_THAT(sentence(group, group.dram), HasSubstr("DRAM bandwidth is not what binds: with 30 % of it taken away "
                                                       "the time grew by 0.0 %"));
}

/// A thief of any kind takes power, so that the clock falls: compared with the work alone it would look like bandwidth.
TEST(Theft, PowerIsNotTakenForBandwidth) {
    const MadeTheft made{.computing_clock = 0.88, .taking_clock = 0.89};
    EXPECT_EQ(findings(of_sms, made), Findings(does_not, does_not));
    const TheftGroup group = robbed_group(of_sms, made);
    EXPECT_GT(group.us.value, group.alone_us.value * 1.1) << "the thief that computes shows it";
    EXPECT_LE(group.dram.elasticity->low, 0);
    EXPECT_GE(group.dram.elasticity->high, 0);
    EXPECT_EQ(findings(of_dram, made), Findings(binds, does_not));
}

/// Which of two clocks is right is not known of work that does not follow the SMs' clock.
TEST(Theft, TheIntervalHoldsTheFigureAtEqualClocks) {
    const TheftGroup group = robbed_group(of_sms, {.computing_clock = 0.8, .taking_clock = 1});
    EXPECT_LT(group.dram.elasticity->value, -0.5);
    EXPECT_GE(group.dram.elasticity->high, 0);
    Point unknown = robbed({{"op", of_sms}}, {.computing_clock = 0.8, .taking_clock = 1});
    for (ThiefRun& run : unknown.theft->runs) run.sm_clock_mhz = Quantity::unavailable("no NVML");
    EXPECT_LT(theft_of(unknown).by_op[0].dram.elasticity->high, 0);
}

TEST(Theft, WorkThatUsesAPartOfARoofIsBoundOnceMoreIsTaken) {
    const auto uses = [](double share) {
        return [=](const Left& left) { return 100 * std::max(1.0, share / left.dram); };
    };
    EXPECT_EQ(findings(uses(0.5)).first, does_not);
    EXPECT_EQ(findings(uses(0.8)).first, partly);
    EXPECT_EQ(findings(uses(0.95)).first, binds);
}

TEST(Theft, HalfOfTheTimeIsBoundInPart) {
    const auto half = [](const Left& left) { return 50 + 50 / left.dram; };
    EXPECT_EQ(findings(half).first, partly);
    const TheftGroup group = robbed_group(half);
    EXPECT_THAT(sentence(group, group.dram), HasSubstr("at least a part of the time"));
}

TEST(Theft, WideSpreadAndDriftDecideNothing) {
    for (const TimeWith& time : {TimeWith(of_dram), TimeWith(of_sms)})
        EXPECT_EQ(findings(time, {.spread = 0.1}).first, cannot_tell);
    EXPECT_EQ(findings(of_sms, {.drift = 0.03, .shares = {0.1, 0.2, 0.3}}).first, cannot_tell)
        << "the runs that only compute differ by more";
}

/// As on a host that others use for a moment: one run's interval is wide, and the medians are as before.
TEST(Theft, IsDecidedThoughOneOfThreeBaselinesWasDisturbed) {
    const MadeTheft made{.spread = 0.005};
    Point point = robbed({{"op", of_sms}}, made);
    add_run(point, {{"op", of_sms}}, made, "compute", 0);
    const auto finding = [&] { return theft_of(point).by_op.at(0).dram.finding; };
    ThiefRun& disturbed = point.theft->runs.at(1);
    ASSERT_EQ(disturbed.takes, "compute");
    disturbed.step_low_us.at(0) *= 0.83;
    disturbed.step_high_us.at(0) *= 1.09;
    EXPECT_EQ(finding(), does_not);
    disturbed.step_us.at(0) *= 0.8;
    disturbed.step_low_us.at(0) *= 0.8;
    EXPECT_EQ(finding(), cannot_tell) << "its median is another one";
}

/// A thief of 30 % of DRAM and one that computes change places so many times, on a host that is up to 1.5 times as slow
/// from one turn to the next. `apart`: all turns of one before all of the other, at the same speeds.
Point taken_in_turns(const TimeWith& time, int turns, bool apart = false) {
    Point point;
    point.steps.emplace_back().op = "op";
    point.theft.emplace();
    add_run(point, {{"op", time}}, {}, "nothing", 0);
    const auto add = [&](bool takes, int turn) {
        const double slower = 1 + 0.5 * std::abs(std::sin(7.0 * turn * turn));
        const auto at_that_speed = [&](const Left& left) { return slower * time(left); };
        add_run(point, {{"op", at_that_speed}}, {}, takes ? "dram" : "compute", takes ? 0.3 : 0);
    };
    if (apart) {
        for (int turn = 0; turn < 2 * turns; ++turn) add(turn >= turns, turn);
    } else {
        for (int turn = 0; turn < turns; ++turn)
            for (const bool takes : {turn % 2 != 0, turn % 2 == 0}) add(takes, turn);
    }
    return point;
}

TEST(Theft, IsDecidedByTurnsOnAHostWhoseSpeedChanges) {
    const TheftGroup dram = theft_of(taken_in_turns(of_dram, 20)).by_op.at(0),
                     sms = theft_of(taken_in_turns(of_sms, 20)).by_op.at(0);
    EXPECT_NEAR(dram.dram.elasticity->value, 1, 1e-9);
    EXPECT_EQ(dram.dram.finding, binds);
    EXPECT_NEAR(sms.dram.elasticity->value, 0, 1e-9);
    EXPECT_EQ(sms.dram.finding, does_not);
    ASSERT_EQ(dram.dram.effects.size(), 1u) << "turns are one effect";
    EXPECT_NEAR(dram.dram.effects.front().share, 0.3, 1e-9);
    EXPECT_NEAR(dram.dram.effects.front().ratio.value, 1 / 0.7, 1e-9);
}

TEST(Theft, TheSameRunsApartOrInFewTurnsDecideNothing) {
    for (const TimeWith& time : {TimeWith(of_dram), TimeWith(of_sms)}) {
        const TheftGroup few = theft_of(taken_in_turns(time, 5)).by_op.at(0);
        EXPECT_EQ(few.dram.finding, cannot_tell);
        EXPECT_EQ(few.dram.effects.size(), 5u);
    }
    EXPECT_EQ(theft_of(taken_in_turns(of_sms, 20, true)).by_op.at(0).dram.finding, cannot_tell);
    EXPECT_EQ(theft_of(taken_in_turns(of_dram, 20, true)).by_op.at(0).dram.finding, cannot_tell);
}

/// The interval leaves three of sixteen turns out at either end, so that as many disturbed ones change nothing.
TEST(Theft, ThreeOfSixteenTurnsMayBeDisturbed) {
    for (const int disturbed : {3, 4}) {
        Point point = taken_in_turns(of_sms, 16);
        int left = disturbed;
        for (ThiefRun& run : point.theft->runs)
            if (run.takes == "dram" && left-- > 0) run.step_us[0] = run.step_high_us[0] = 2 * run.step_us[0];
        const LevelElasticity dram = theft_of(point).by_op.at(0).dram;
        EXPECT_EQ(dram.finding, disturbed == 3 ? does_not : cannot_tell);
        EXPECT_NEAR(dram.elasticity->low, 0, 1e-9);
        EXPECT_NEAR(dram.elasticity->high, disturbed == 3 ? 0 : std::log(2) / std::log(1 / 0.7), 1e-9);
    }
}

/// A thief that got much more in one turn, or less in some, says nothing of the others.
TEST(Theft, TurnsOfOtherSharesAreLeftOut) {
    Point point = taken_in_turns(of_sms, 16);
    int seen = 0;
    for (ThiefRun& run : point.theft->runs) {
        if (run.takes != "dram") continue;
        ++seen;
        if (seen == 1) run.share = 0.6;
        if (seen > 1 && seen < 6) run.share = 0.1, run.step_us[0] = run.step_high_us[0] = 2 * run.step_us[0];
    }
    const LevelElasticity dram = theft_of(point).by_op.at(0).dram;
    EXPECT_EQ(dram.finding, does_not);
    EXPECT_NEAR(dram.elasticity->high, 0, 1e-9);
}

/// As where one of three baselines took more than twice as long: their mean may be anything.
TEST(Theft, IsNotDecidedWhereTheBaselineMayBeNothing) {
    Point point = robbed({{"op", of_sms}});
    add_run(point, {{"op", of_sms}}, {}, "compute", 0);
    ThiefRun& slow = point.theft->runs.back();
    slow.step_us[0] = slow.step_low_us[0] = slow.step_high_us[0] = 400;
    const LevelElasticity dram = theft_of(point).by_op.at(0).dram;
    EXPECT_EQ(dram.elasticity, std::nullopt);
    EXPECT_EQ(dram.finding, cannot_tell);
}

/// Clocks of the turns' own runs: a thief that lowers them is not bandwidth.
TEST(Theft, TurnsHoldTheFigureAtEqualClocks) {
    Point point = taken_in_turns(of_sms, 20);
    for (ThiefRun& run : point.theft->runs)
        if (run.takes == "dram") {
            run.sm_clock_mhz = Quantity::measured(*run.sm_clock_mhz.value * 0.8);
            for (double* us : {&run.step_us[0], &run.step_low_us[0], &run.step_high_us[0]}) *us /= 0.8;
        }
    const Interval elasticity = *theft_of(point).by_op.at(0).dram.elasticity;
    EXPECT_NEAR(elasticity.low, 0, 1e-9);
    EXPECT_NEAR(elasticity.high, std::log(1 / 0.8) / std::log(1 / 0.7), 1e-9);
}

TEST(Theft, ASmallShareThatSlowsMoreThanALargeOneDecidesNothing) {
    Point point = robbed({{"op", of_dram}});
    for (ThiefRun& run : point.theft->runs)
        if (run.takes == "dram" && run.share == 0.1) run.step_us[0] = run.step_low_us[0] = run.step_high_us[0] = 200;
    EXPECT_EQ(theft_of(point).by_op[0].dram.finding, cannot_tell);
}

/// As FMA beside a thief of L2 on an H200: 0.2 % more with a tenth taken than with three, each to 0.05 %.
TEST(Theft, WhatStaysWhateverIsTakenIsNotBound) {
    const auto finding = [](double more_at_a_tenth) {
        Point point = robbed({{"op", of_sms}}, {.spread = 0.0005, .shares = {0.1, 0.3}});
        for (ThiefRun& run : point.theft->runs)
            if (run.takes == "dram" && run.share == 0.1)
                for (double* us : {&run.step_us[0], &run.step_low_us[0], &run.step_high_us[0]}) *us *= more_at_a_tenth;
        return theft_of(point).by_op[0].dram.finding;
    };
    EXPECT_EQ(finding(1.002), does_not);
    EXPECT_EQ(finding(1.02), does_not) << "an elasticity under 0.2";
    EXPECT_EQ(finding(1.023), cannot_tell);
}

/// Beside a copy a thief gets 22 % of DRAM where it is asked for 30 %, and 20 % where it is asked for 20 %.
TEST(Theft, OfSharesThatAreNearlyTheSameTheSmallerMaySlowMore) {
    const auto finding = [](double smaller) {
        Point point = robbed({{"op", of_dram}}, {.spread = 0.0005, .shares = {0.22, smaller}});
        for (ThiefRun& run : point.theft->runs)
            if (run.takes == "dram" && run.share == smaller)
                run.step_us[0] = run.step_low_us[0] = run.step_high_us[0] = 130;  // 128.2 beside 22 %
        return theft_of(point).by_op[0].dram.finding;
    };
    EXPECT_EQ(finding(0.2), binds);
    EXPECT_EQ(finding(0.15), cannot_tell);
}

TEST(Theft, ATinyShareDecidesNothing) {
    const TheftGroup group = robbed_group(of_dram, {.shares = {0.04}});
    EXPECT_FALSE(group.dram.elasticity.has_value());
    EXPECT_EQ(group.dram.finding, cannot_tell);
    EXPECT_THAT(sentence(group, group.dram), HasSubstr("binds is unknown"));
}

TEST(Theft, WithoutL2sThiefDramIsNotToldApartFromIt) {
    const BandwidthElasticity theft = theft_of(robbed({{"op", of_l2}}, {.takes_l2 = false}));
    EXPECT_FALSE(theft.apart);
    EXPECT_GT(theft.by_op[0].dram.elasticity->value, 0.4);
    EXPECT_THAT(sentence(theft.by_op[0], theft.by_op[0].l2), IsEmpty());
    EXPECT_TRUE(theft_of(robbed({{"op", of_l2}})).apart);
}

TEST(Theft, StepsAreSummedAndFoundByPosition) {
    Point point = robbed({{"gemm", of_sms}, {"copy", of_dram}, {"gemm", of_sms}});
    point.steps[2].layer = "h.1.gemm";
    const BandwidthElasticity theft = theft_of(point);
    ASSERT_EQ(theft.by_op.size(), 2u);
    EXPECT_EQ(theft.by_op[0].name, "gemm");
    EXPECT_THAT(theft.by_op[0].steps, testing::ElementsAre(0u, 2u));
    EXPECT_EQ(theft.by_layer[0].name, "h.*.gemm");
    EXPECT_DOUBLE_EQ(theft.model->us.value, 300);
    EXPECT_EQ(theft.multiprocessors, 112);
    EXPECT_EQ(theft.of_step(1)->dram.finding, binds);
    EXPECT_EQ(theft.of_step(3), nullptr);
}

TEST(Theft, StepsWithoutKernelsAreLeftOut) {
    Point point = robbed({{"gemm", of_sms}, {"fill", of_sms}});
    for (ThiefRun& run : point.theft->runs) run.step_us[1] = run.step_low_us[1] = run.step_high_us[1] = 0;
    EXPECT_EQ(theft_of(point).by_op.size(), 1u);
    EXPECT_EQ(theft_of(point).of_step(1), nullptr);
    for (ThiefRun& run : point.theft->runs) run.step_low_us[0] = 0;
    EXPECT_THAT(theft_of(point).unavailable, HasSubstr("no step ran kernels"));
}

TEST(Theft, WhatDoesNotFitThePointIsRefused) {
    EXPECT_THAT(theft_of({}).unavailable, IsEmpty()) << "not asked for";
    const auto refusal = [](const std::function<void(BandwidthTheft&)>& change) {
        Point point = robbed({{"op", of_dram}});
        change(*point.theft);
        const BandwidthElasticity theft = theft_of(point);
        EXPECT_FALSE(theft.model.has_value());
        return theft.unavailable;
    };
    const auto without = [](const char* takes) {
        return [=](BandwidthTheft& theft) {
            std::erase_if(theft.runs, [&](const ThiefRun& run) { return run.takes == takes; });
        };
    };
    EXPECT_THAT(refusal(without("nothing")), HasSubstr("alone"));
    EXPECT_THAT(refusal(without("compute")), HasSubstr("only computes"));
    EXPECT_THAT(refusal([&](BandwidthTheft& theft) { without("dram")(theft), without("l2")(theft); }),
                HasSubstr("no thief took bandwidth"));
    for (const std::function<void(ThiefRun&)>& spoil : std::vector<std::function<void(ThiefRun&)>>{
             [](ThiefRun& run) { run.step_us.clear(); }, [](ThiefRun& run) { run.step_low_us.push_back(1); },
             [](ThiefRun& run) { run.share = 1; }, [](ThiefRun& run) { run.share = -0.1; },
             [](ThiefRun& run) { run.share = std::nan(""); }, [](ThiefRun& run) { run.takes = "sms"; },
             [](ThiefRun& run) { run.multiprocessors = 96; }, [](ThiefRun& run) { run.step_high_us[0] = 1; }})
        EXPECT_THAT(refusal([&](BandwidthTheft& theft) { spoil(theft.runs[2]); }),
                    HasSubstr("not of the point's steps"));
    EXPECT_EQ(refusal([](BandwidthTheft& theft) {
                  theft = {"the driver knows no green contexts", {}};
              }),
              "the driver knows no green contexts");
}

TEST(Theft, WhatIsWithheldIsStillSeen) {
    BandwidthElasticity theft = theft_of(robbed({{"op", of_dram}}));
    withhold(theft);
    EXPECT_EQ(theft.by_op[0].dram.finding, cannot_tell);
    EXPECT_EQ(theft.of_step(0)->l2.finding, cannot_tell);
    EXPECT_EQ(theft.model->dram.finding, cannot_tell);
    EXPECT_NEAR(theft.model->dram.elasticity->value, 1, 1e-9);
}

Section theft_section_of(BandwidthElasticity theft) {
    Result result;
    result.points.emplace_back();
    Explanation explanation;
    explanation.theft = std::move(theft);
    const ExplainedResult explained(result, {std::move(explanation)});
    return section_called("theft", {explained});
}

TEST(Theft, TheSectionHasATableSentencesAndItsLimits) {
    EXPECT_TRUE(theft_section_of(theft_of({})).empty());
    const std::string text =
        render_terminal({"", {theft_section_of(theft_of(robbed({{"gemm", of_sms}, {"copy", of_dram}})))}}, 200);
    for (const char* part :
         {"Time against bandwidth", "112 SMs", "DRAM elasticity", "L2 elasticity", "copy: DRAM bandwidth is what binds",
          "gemm: L2 bandwidth is not what binds", "all steps: DRAM bandwidth", "By layer", "What it cannot tell"})
        EXPECT_THAT(text, HasSubstr(part));
    BandwidthElasticity none;
    none.unavailable = "the driver knows no green contexts";
    EXPECT_THAT(render_terminal({"", {theft_section_of(none)}}, 100), HasSubstr("knows no green contexts"));
}

/// The same facts of a CPU, in its words: a thief there takes nothing of L2.
TEST(Theft, ACpuHasThreadsAndCores) {
    const auto of_cpu = [](const std::vector<std::pair<std::string, TimeWith>>& steps) {
        Point point = robbed(steps, {.takes_l2 = false});
        point.set("backend", "cpu");
        return point;
    };
    Point point = of_cpu({{"gemm", of_sms}, {"residual", of_dram}});
    BandwidthElasticity theft = theft_of(point);
    EXPECT_EQ(theft.workers, Workers::threads);
    EXPECT_EQ(theft.of_step(0)->dram.finding, does_not);
    EXPECT_EQ(theft.of_step(1)->dram.finding, binds);
    EXPECT_NEAR(theft.of_step(1)->dram.elasticity->value, 1, 1e-9);
    const std::string text = render_terminal({"", {theft_section_of(std::move(theft))}}, 200);
    for (const char* part : {"112 threads", "a thief on other cores", "every step timed", "evicts nothing",
                             "residual: DRAM bandwidth is what binds", "gemm: DRAM bandwidth is not what binds"})
        EXPECT_THAT(text, HasSubstr(part));
    for (const char* part : {"SM", "L2"}) EXPECT_THAT(text, testing::Not(HasSubstr(part)));
}

}  // namespace
}  // namespace kbench
