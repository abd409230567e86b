// The three sentences that come first.
#include "analysis/explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/roof_breach.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> answer_of(const std::vector<Step>& steps, CeilingRun roofs = known::gpu_roofs(),
                                   double beyond_us = 0) {
    Result result = known::result_of(steps, std::move(roofs), beyond_us);
    result.points[0].set("batch", 1);
    result.points[0].set("seq", 64);
    return explain(result, result.points[0]).answer;
}

TEST(Answer, SaysHowLongWhatBindsAndWhatWouldChangeIt) {
    const std::vector<std::string> answer = answer_of({{.us = 1000, .dram = 0.8, .unfused = 0.8}});
    ASSERT_EQ(answer.size(), 3);
    EXPECT_EQ(
        answer[0],
        "made up at batch 1, sequence length 64, fp32 takes 1.00 ms on this GPU; its steps, gaps and the correction for recording add up to that within 0.0 %.");
    EXPECT_EQ(
        answer[1],
        "It is bandwidth-bound (DRAM); not compute-bound, not latency-bound, not launch-bound, not occupancy-limited: 100 % of the steps' time is bandwidth-bound; at the roofs the work would take 80 % of the time; its DRAM traffic (measured) would take 80 % of the time at full bandwidth.");
    EXPECT_THAT(answer[2], HasSubstr("100 % stalled"));
    EXPECT_THAT(answer[2], HasSubstr("more bandwidth"));
}

TEST(Answer, SaysThatRoofsTieWhereThatLeavesItUntold) {
    const Step tied{.op = "gemm", .us = 100, .compute = 0.7, .l2 = 0.69, .issue = 0.3};
    EXPECT_THAT(
        answer_of({tied})[1],
        HasSubstr(
            "at the roofs the work would take 70 % of the time, and in steps with 100 % of the time the two longest roof times are too close to tell apart"));
    Step apart = tied;
    apart.compute = 0.8;
    EXPECT_THAT(answer_of({apart})[1], testing::Not(HasSubstr("tie")));
}

TEST(Answer, SaysThatRoofsTieFromAFifthOfTheTimeOn) {
    const auto second = [](double tied_us) {
        return answer_of({{.op = "gemm", .us = tied_us, .compute = 0.7, .l2 = 0.69, .issue = 0.3},
                          {.us = 40, .compute = 0.9, .issue = 0.9},
                          {.us = 60 - tied_us, .dram = 0.9}})[1];
    };
    EXPECT_THAT(second(20.5), HasSubstr("of the time the two longest roof times are too close to tell apart"));
    EXPECT_THAT(second(19.5), testing::Not(HasSubstr("tie")));
}

/// 2.7 and 0.8 of four warps wait, in the mean of all cycles; 1.5 may do so while another one issues.
TEST(Answer, SaysBetweenWhichEndsWarpsWaitedWhereThatWasCounted) {
    Result result = known::result_of({{.us = 1000, .issue = 0.5}});
    result.points[0].steps[0].counters.insert({{"issue_active", 50},
                                               {"warps_active", 4},
                                               {"warps_eligible", 0.5},
                                               {"stall_selected", 1},
                                               {"stall_wait", 2 * 2.7},
                                               {"stall_membar", 2 * 0.8}});
    EXPECT_THAT(explain(result, result.points[0]).answer[2],
                HasSubstr("50 % stalled (waiting for wait in 30 to 50 %, for membar in 0 to 20 %); "));
}

TEST(Answer, NamesWaitsFromATwentiethOfTheTimeOn) {
    Result result = known::result_of({{.us = 1000, .issue = 0.2}});
    std::map<std::string, double>& counters = result.points[0].steps[0].counters;
    counters.insert({{"sampled_barrier", 65}, {"sampled_wait", 935}});
    EXPECT_THAT(explain(result, result.points[0]).answer[2],
                HasSubstr("(waiting for wait in 75 %, for barrier in 5 %)"));
    counters["sampled_barrier"] = 60;
    EXPECT_THAT(explain(result, result.points[0]).answer[2], HasSubstr("(waiting for wait in 75 %); "));
}

TEST(Answer, NamesTwoWaitsAtMost) {
    Result result = known::result_of({{.us = 1000, .issue = 0.2}});
    result.points[0].steps[0].counters.insert(
        {{"sampled_barrier", 25}, {"sampled_wait", 65}, {"sampled_long_scoreboard", 10}});
    EXPECT_THAT(explain(result, result.points[0]).answer[2],
                HasSubstr("(waiting for wait in 52 %, for barrier in 20 %); "));
}

TEST(Answer, SaysWhatWarpsWaitedForWhereThatWasSampled) {
    Result result = known::result_of({{.us = 1000, .issue = 0.2}});
    const auto waits = [&] { return explain(result, result.points[0]).answer[2]; };
    EXPECT_THAT(waits(), HasSubstr("80 % stalled; "));
    result.points[0].steps[0].counters.insert(
        {{"sampled_barrier", 25}, {"sampled_wait", 70}, {"sampled_long_scoreboard", 5}});
    EXPECT_THAT(waits(), HasSubstr("80 % stalled (waiting for wait in 56 %, for barrier in 20 %); "));
}

TEST(Answer, SaysThatLittleTrafficDoesNotBind) {
    EXPECT_THAT(answer_of({{.us = 1000, .dram = 0.29, .unfused = 0.29}})[1],
                HasSubstr("would take 29 % of the time at full bandwidth, so DRAM is not the bottleneck"));
    EXPECT_THAT(answer_of({{.us = 0.5, .dram = 0.2}}, known::without(known::gpu_roofs(), "graph_node"))[1],
                HasSubstr("so DRAM is not the bottleneck"));
    EXPECT_THAT(answer_of({{.us = 1000, .dram = 0.31, .unfused = 0.31}})[1],
                testing::Not(HasSubstr("is not the bottleneck")));
}

/// Steps that DRAM may bind each by itself have to be few.
TEST(Answer, SaysThatDramDoesNotBindWhereItMayBindLessThanAFifth) {
    const auto second = [](double us) {
        return answer_of({{.us = us, .dram = 0.65}, {.us = 100 - us, .compute = 0.1, .issue = 0.1}})[1];
    };
    EXPECT_THAT(second(19.5), HasSubstr("so DRAM is not the bottleneck"));
    EXPECT_THAT(second(20.5), testing::Not(HasSubstr("is not the bottleneck")));
}

TEST(Answer, ConfessesThatTheAccountDoesNotAddUp) {
    EXPECT_THAT(answer_of({{.dram = 0.8}}, known::gpu_roofs(), 10)[0], HasSubstr("where 2 % is the goal"));
}

TEST(Answer, NamesTheChangeThatTheVerdictAsksFor) {
    EXPECT_THAT(answer_of({{.compute = 0.9, .issue = 0.9}})[2], HasSubstr("a faster unit"));
    EXPECT_THAT(answer_of({{.issue = 0.9}})[2], HasSubstr("fewer instructions of that kind"));
    EXPECT_THAT(answer_of({{.occupancy_pct = 90}})[2], HasSubstr("more work in flight"));
    EXPECT_THAT(answer_of({{.us = 50, .gap_us = 50}})[2], HasSubstr("fewer and longer kernels"));
    EXPECT_THAT(answer_of({{.active = 0.1}})[2], HasSubstr("more blocks"));
    EXPECT_THAT(answer_of({{.compute = 0.9}, {.dram = 0.9}})[2], HasSubstr("with no single bottleneck"));
}

/// Unfused traffic that nobody counted may be a quarter of what was moved.
TEST(Answer, SaysLessOfBytesThatNobodyCounted) {
    EXPECT_THAT(answer_of({{.us = 1000, .kernels = 0, .unfused = 0.07, .counted = false}}, known::cpu_roofs())[1],
                HasSubstr("so DRAM is not the bottleneck"));
    EXPECT_THAT(answer_of({{.us = 1000, .kernels = 0, .unfused = 0.08, .counted = false}}, known::cpu_roofs())[1],
                testing::Not(HasSubstr("is not the bottleneck")));
}

TEST(Answer, SaysWhichCountersMayTell) {
    const Step uncounted{.dram = 0.1, .issue = 0.02, .occupancy_pct = 98, .units_counted = false};
    EXPECT_THAT(answer_of({uncounted})[2], HasSubstr("--counters core,tensor,pipes"));
    Step counted = uncounted;
    counted.units_counted = true;
    EXPECT_THAT(answer_of({counted})[2], testing::Not(HasSubstr("--counters")));
}

/// Half of the steps at 63 % of DRAM's bandwidth are enough for the verdict, and little traffic for the whole. At 60 %
/// the bottleneck of these is unknown, and so nobody can say that DRAM is not it.
TEST(Answer, NeverSaysThatWhatBindsItDoesNot) {
    const auto second = [](double share) {
        return answer_of({{.us = 52, .dram = share}, {.us = 48, .compute = 0.1, .issue = 0.1}}, known::gpu_roofs(),
                         11)[1];
    };
    EXPECT_THAT(second(0.63), HasSubstr("It is bandwidth-bound (DRAM)"));
    EXPECT_THAT(second(0.63), HasSubstr("take 30 % of the time"));
    EXPECT_THAT(second(0.60), HasSubstr("the bottleneck may be DRAM"));
    EXPECT_THAT(second(0.50), HasSubstr("so DRAM is not the bottleneck"));
    for (const double share : {0.63, 0.60})
        EXPECT_THAT(second(share), testing::Not(HasSubstr("is not the bottleneck")));
}

/// 40 % that nobody can tell of and 35 % of one bound may be 75 % of that bound.
TEST(Answer, SaysThatNoSingleThingBindsOnlyWhereThatIsKnown) {
    const Step half_busy{
        .op = "gemm", .us = 40, .issue = 0.2, .occupancy_pct = 12, .units = {{"tensor_pipe_active", 70}}};
    const Step fma{.us = 35, .compute = 0.9, .issue = 0.9}, copy{.us = 25, .dram = 0.9};
    EXPECT_THAT(answer_of({half_busy, fma, copy})[1],
                HasSubstr("For 40 % of the steps' time the bottleneck is one of"));
    // A quarter that nobody can tell of and a quarter of each of three bounds: it may be half of one.
    Step quarter = half_busy, chase{.us = 25, .issue = 0.02, .occupancy_pct = 98};
    quarter.us = 25;
    EXPECT_THAT(answer_of({quarter, {.us = 25, .compute = 0.9, .issue = 0.9}, copy, chase})[1],
                HasSubstr("For 25 % of the steps' time the bottleneck is one of"));
    chase.us = 40;
    EXPECT_THAT(answer_of({chase, fma, copy})[1], HasSubstr("There is no single bottleneck"));
}

TEST(Answer, SaysWhereNothingCanBeTold) {
    const std::vector<std::string> answer = answer_of(
        {{.op = "gemm", .compute = 0.4, .issue = 0.2, .occupancy_pct = 12, .units = {{"tensor_pipe_active", 70}}}});
    EXPECT_THAT(answer[1], HasSubstr("For 100 % of the steps' time the bottleneck may be tensor cores (at most"));
    EXPECT_THAT(answer[2], HasSubstr("the next experiment is times at other sizes"));
}

/// A product of 100 us in which 60 are work at its roof, 30 its main loop and 10 fixed.
Result fitted_product() {
    Result result = known::result_of({{.op = "gemm", .us = 100, .compute = 0.55, .occupancy_pct = 12}});
    result.points[0].size_scaling = {known::make_sizes({0}, 20, 80)};
    return result;
}

TEST(Answer, SaysTheLargestCausesAndTheirChanges) {
    const Result result = fitted_product();
    EXPECT_EQ(
        explain(result, result.points[0]).answer[1],
        "Of 0.100 ms, 0.055 ms are work at the roof of fp16_tensor, 0.025 ms main loop (more independent work a warp), 0.020 ms fixed time of 1 step (fewer, larger kernels (fuse with a neighbour, a larger batch)); 0.000 ms are not explained.");
}

/// Two products have one fit: one takes 10 us less in the model and the other 10 us more.
TEST(Answer, SaysWhatMisfitsCancelInWhatIsLeft) {
    Result result = known::result_of({{.op = "gemm", .us = 90, .compute = 0.5, .occupancy_pct = 12},
                                      {.op = "gemm", .us = 110, .compute = 0.5, .occupancy_pct = 12}});
    result.points[0].size_scaling = {known::make_sizes({0, 1}, 20, 80)};
    EXPECT_THAT(explain(result, result.points[0]).answer[1],
                HasSubstr("0.000 ms are not explained, in which misfits of 0.020 ms cancel"));
    result = known::result_of({{.op = "gemm", .us = 90, .compute = 0.5, .occupancy_pct = 12}});
    result.points[0].size_scaling = {known::make_sizes({0}, 20, 80)};
    EXPECT_THAT(explain(result, result.points[0]).answer[1], HasSubstr("; 0.0100 ms too many are explained"));
}

TEST(Answer, BeginsWithAnInterventionThatContradictsARoof) {
    Result result = known::result_of({{.us = 100, .dram = 0.9, .unfused = 0.9}});
    known::add_sm_scaling(result.points[0], 1);
    const Explanation elastic = explain(result, result.points[0]);
    EXPECT_THAT(elastic.answer[0],
                HasSubstr("It slows down as SMs are taken away, yet the bytes of DRAM or L2 would take 90 %"));
    EXPECT_NE(elastic.verdicts.model.bound, Bound::bandwidth);
    known::add_sm_scaling(result.points[0], 0);
    EXPECT_TRUE(explain(result, result.points[0]).contradictions.empty());
    EXPECT_EQ(explain(result, result.points[0]).verdicts.model.bound, Bound::bandwidth);
    result = known::result_of({{.us = 100, .compute = 0.8, .issue = 0.5}});
    known::add_sm_scaling(result.points[0], 0);
    const Explanation rigid = explain(result, result.points[0]);
    EXPECT_THAT(rigid.answer[0], testing::AnyOf(HasSubstr("impossible: "), HasSubstr("Taking SMs away cost nothing")));
    EXPECT_NE(rigid.verdicts.model.bound, Bound::compute);
    for (const std::string& sentence : rigid.answer) EXPECT_THAT(sentence, testing::Not(HasSubstr("more SMs")));
}

/// What threads reach may be less than DRAM gives, so that neither their bytes nor the roof need be wrong.
TEST(Answer, SaysOfACpuThatItsThreadsAskForTooLittle) {
    Result result = known::result_of({{.us = 1000, .kernels = 0, .dram = 0.9, .unfused = 0.9, .counted = false}},
                                     known::cpu_roofs());
    ASSERT_EQ(explain(result, result.points[0]).verdicts.model.bound, Bound::bandwidth);
    known::add_theft(result.points[0], 0, 0);
    const Explanation unslowed = explain(result, result.points[0]);
    EXPECT_THAT(unslowed.answer[0], HasSubstr("how many loads they have under way, and not DRAM"));
    EXPECT_NE(unslowed.verdicts.model.bound, Bound::bandwidth);
    known::add_theft(result.points[0], 1, 0);
    EXPECT_TRUE(explain(result, result.points[0]).contradictions.empty());
    EXPECT_EQ(explain(result, result.points[0]).verdicts.model.bound, Bound::bandwidth);
    result.points[0].theft.reset();
    known::add_sm_scaling(result.points[0], 1);
    EXPECT_THAT(explain(result, result.points[0]).answer[0], HasSubstr("It slows down as threads are taken away"));
}

TEST(Answer, BeginsWithATheftThatContradictsBytes) {
    Result result = known::result_of({{.us = 100, .dram = 0.9, .unfused = 0.9}});
    known::add_theft(result.points[0], 0, 0);
    const Explanation cached = explain(result, result.points[0]);
    EXPECT_THAT(cached.answer[0],
                HasSubstr("Taking DRAM's bandwidth away cost nothing, yet its bytes would take 90 %"));
    EXPECT_NE(cached.verdicts.model.bound, Bound::bandwidth);
    EXPECT_EQ(cached.suspects.whole[0].finding, Finding::rejected);
    known::add_theft(result.points[0], 1, 0);
    EXPECT_TRUE(explain(result, result.points[0]).contradictions.empty());
    result = known::result_of({{.us = 100, .dram = 0.2, .unfused = 0.2}});
    known::add_theft(result.points[0], 1, 0);
    const Explanation hungry = explain(result, result.points[0]);
    EXPECT_THAT(hungry.answer[0],
                HasSubstr("It slows down as DRAM's bandwidth is taken away, yet its bytes would take only 20 %"));
    EXPECT_EQ(hungry.verdicts.model.bound, Bound::bandwidth);
    EXPECT_EQ(hungry.verdicts.model.level, "DRAM");
    EXPECT_EQ(hungry.suspects.whole[0].finding, Finding::confirmed);
}

TEST(Answer, PromisesACpuNoSms) {
    const std::vector<std::string> answer =
        answer_of({{.us = 1000, .kernels = 0, .compute = 0.9, .counted = false}}, known::cpu_roofs());
    EXPECT_THAT(answer[2], HasSubstr("more cores, a higher clock"));
    EXPECT_THAT(answer[2], testing::Not(HasSubstr("SMs")));
}

TEST(Answer, WithoutRoofsClaimsNothing) {
    const std::vector<std::string> answer = answer_of({{.compute = 0.9}}, {});
    EXPECT_EQ(answer[1], "The bottleneck is unknown: nobody measured them.");
    EXPECT_THAT(answer[2], HasSubstr("kbench ceilings"));
}

TEST(Answer, OfAPointThatWasNotTimedIsItsReason) {
    Result result = known::result_of({{}});
    result.points[0].end_to_end.reset();
    result.points[0].reason = "no fp16 here";
    EXPECT_THAT(explain(result, result.points[0]).answer, ElementsAre(HasSubstr("no fp16 here")));
}

/// A product, a copy, a chain and a step that waits, all of `us`: whatever is found of their shares is the same.
Result of_all_kinds(double us) {
    Result result = known::result_of(
        {{.op = "gemm", .us = us, .compute = 0.7, .dram = 0.2, .active = 0.8, .units = {{"tensor_pipe_active", 80}}},
         {.us = us, .compute = 0.1, .dram = 0.9, .l2 = 0.3, .unfused = 0.7},
         {.op = "lstm", .us = us, .l2 = 0.2, .issue = 0.1, .occupancy_pct = 12, .time_steps = 20},
         {.us = us, .dram = 0.1, .issue = 0.02, .shared = 0.2}},
        known::without(known::gpu_roofs(), "graph_node"));
    Point& point = result.points[0];
    point.steps[0].counters["sm_cycles_active_max"] = point.steps[0].counters.at("sm_cycles_active") * 1.1;
    point.steps[0].kernels[0].lost_in_last_wave_pct = {10.0, Origin::derived, ""};
    for (const auto& [op, steps] : {std::pair("gemm", 1), {"layernorm", 2}, {"lstm", 1}}) {
        MarginalCost& cost = point.marginal.emplace_back();
        cost.op = op;
        cost.difference_ms.summary_ms.median = steps * us * 1e-3;
    }
    return result;
}

TEST(Explanation, IsOfSharesHoweverShortTheStepsAre) {
    const Result usual = of_all_kinds(100), tiny = of_all_kinds(0.125);
    const Explanation expected = explain(usual, usual.points[0]), found = explain(tiny, tiny.points[0]);
    const auto of_time = [](const Explanation& explanation, double us) {
        return us / explanation.breakdown.end_to_end_us;
    };
    EXPECT_EQ(found.answer[1], expected.answer[1]);
    for (std::size_t s = 0; s < expected.verdicts.steps.size(); ++s) {
        EXPECT_EQ(found.verdicts.steps[s].rule, expected.verdicts.steps[s].rule) << s;
        EXPECT_NEAR(found.verdicts.steps[s].margin, expected.verdicts.steps[s].margin, 1e-9) << s;
        EXPECT_EQ(known::letters(found.verdicts.steps[s].hypotheses),
                  known::letters(expected.verdicts.steps[s].hypotheses));
    }
    ASSERT_EQ(expected.cross_checks.size(), 3);
    ASSERT_EQ(found.cross_checks.size(), 3);
    for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(of_time(found, found.cross_checks[c].first_us),
                    of_time(expected, expected.cross_checks[c].first_us), 1e-9);
        EXPECT_NEAR(of_time(found, found.cross_checks[c].second_us),
                    of_time(expected, expected.cross_checks[c].second_us), 1e-9);
    }
    for (auto marks : {&Roofline::steps, &Roofline::layers, &Roofline::ops, &Roofline::model}) {
        ASSERT_EQ((found.roofline.*marks).size(), (expected.roofline.*marks).size());
        for (std::size_t m = 0; m < (expected.roofline.*marks).size(); ++m) {
            EXPECT_NEAR((found.roofline.*marks)[m].roof_share, (expected.roofline.*marks)[m].roof_share, 1e-9);
            EXPECT_NEAR((found.roofline.*marks)[m].flop_per_s / (expected.roofline.*marks)[m].flop_per_s, 1, 1e-9);
        }
    }
    EXPECT_NEAR(found.attribution.dram_binding_share, expected.attribution.dram_binding_share, 1e-9);
    EXPECT_NEAR(found.attribution.excess_bytes / expected.attribution.excess_bytes, 0.125 / 100, 1e-9);
    EXPECT_NEAR(of_time(found, found.breakdown.roof_times.useful_us),
                of_time(expected, expected.breakdown.roof_times.useful_us), 1e-9);
    EXPECT_NEAR(of_time(found, found.cycles.total.no_warp_us), of_time(expected, expected.cycles.total.no_warp_us),
                1e-9);
    ASSERT_EQ(found.time_steps.size(), 1);
    EXPECT_NEAR(found.time_steps[0].together_share(), expected.time_steps[0].together_share(), 1e-9);
    EXPECT_EQ(roofs_of_one(found.time_steps[0]).empty(), roofs_of_one(expected.time_steps[0]).empty());
}

/// A step at 60 % of the DRAM bandwidth that the machine had an hour before.
Result disturbed(std::vector<double> readings) {
    Result result = known::result_of({{.us = 1000, .kernels = 0, .dram = 0.6}}, known::cpu_roofs());
    for (const char* name : {"cpu_dram_read", "cpu_dram_triad"})
        result.points[0].conditions.roofs.push_back({name, readings});
    return result;
}

TEST(Explain, AStepIsComparedWithTheRoofThatOtherProgramsLeft) {
    EXPECT_NE(explain(disturbed({}), disturbed({}).points[0]).verdicts.model.bound, Bound::bandwidth);
    const Result shared = disturbed({580, 600, 610, 620, 640});
    const Explanation explanation = explain(shared, shared.points[0]);
    EXPECT_EQ(explanation.verdicts.model.bound, Bound::bandwidth);
    EXPECT_NEAR(explanation.roof_times[0].at(Level::dram)->us, 1000 * 600 / 610.0, 1e-6);
    EXPECT_TRUE(explanation.is_by_roofs_between_samples);
    const Result alone = disturbed({990, 1000, 1000, 1010});
    EXPECT_NE(explain(alone, alone.points[0]).verdicts.model.bound, Bound::bandwidth);
}

TEST(Explain, ReadingsThatTheStepsExceedAreNoRoof) {
    const Result slower = disturbed({300, 310, 320, 330});
    const Explanation explanation = explain(slower, slower.points[0]);
    EXPECT_NEAR(explanation.roof_times[0].at(Level::dram)->us, 600, 1e-6) << "the machine's";
    EXPECT_FALSE(explanation.is_by_roofs_between_samples);
    EXPECT_THAT(explanation.impossible, testing::IsEmpty());
    EXPECT_FALSE(worst_breach(explanation));
    const Result few = disturbed({600, 610});
    EXPECT_FALSE(explain(few, few.points[0]).is_by_roofs_between_samples);
    const Result spread = disturbed({500, 510, 520, 700});  // above their median, below the fastest
    EXPECT_NEAR(explain(spread, spread.points[0]).roof_times[0].at(Level::dram)->us, 1000 * 600 / 515.0, 1e-6);
}

}  // namespace
}  // namespace kbench
