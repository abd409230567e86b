// What is ok, what cannot be told and what is WRONG, from made-up explanations: right ones, and planted opposites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "tests/truths/matrix.h"
#include "tests/truths/truth.h"

namespace kbench {
namespace {

using testing::HasSubstr;

/// As kbench would explain one step.
KnownResult said(Bound bound, std::string level, std::string rule) {
    KnownResult known;
    known.result = std::make_unique<Result>();
    known.result->points.emplace_back().steps.emplace_back();
    Explanation& explained = known.explained;
    explained.facts.steps.emplace_back().step = &known.result->points[0].steps[0];
    explained.roof_times.emplace_back();
    explained.cycles.steps.emplace_back();
    Verdict& verdict = explained.verdicts.steps.emplace_back();
    verdict.bound = explained.verdicts.model.bound = bound;
    verdict.level = std::move(level);
    verdict.rule = std::move(rule);
    return known;
}

PlantedFigure figure(double planted, std::optional<double> measured, Tolerance tolerance = Tolerance::of_planted) {
    return {"bytes", planted, [=](const KnownResult&) { return measured; }, tolerance};
}

Planted copy() {
    Planted planted;
    planted.what = "a copy";
    planted.right = {{Bound::bandwidth, {"DRAM"}, "memory-roof"}};
    planted.figures = {figure(100, 101)};
    return planted;
}

TEST(Judge, ARightVerdictWithRightFiguresIsOk) {
    const Judgement judgement = judge("copy", copy(), said(Bound::bandwidth, "DRAM", "memory-roof"));
    EXPECT_EQ(judgement.result, TruthResult::ok) << judgement.why;
    EXPECT_EQ(judgement.why, "");
    EXPECT_EQ(judgement.account, "");
    ASSERT_EQ(judgement.figures.size(), 1U);
    EXPECT_NEAR(judgement.figures[0].off, 0.01, 1e-12);
}

TEST(Judge, AFigureHasItsOwnTolerance) {
    Planted planted = copy();
    planted.figures = {figure(100, 108)};
    EXPECT_EQ(judge("copy", planted, said(Bound::bandwidth, "DRAM", "memory-roof")).result, TruthResult::wrong);
    planted.figures[0].within = 0.10;
    EXPECT_EQ(judge("copy", planted, said(Bound::bandwidth, "DRAM", "memory-roof")).result, TruthResult::ok);
    planted.figures = {figure(100, 111)};
    planted.figures[0].within = 0.10;
    EXPECT_EQ(judge("copy", planted, said(Bound::bandwidth, "DRAM", "memory-roof")).result, TruthResult::wrong);
}

TEST(Judge, ACopyThatIsSaidToBeComputeBoundIsWrong) {
    const Judgement judgement = judge("copy", copy(), said(Bound::compute, "fp32_plain", "compute-roof"));
    EXPECT_EQ(judgement.result, TruthResult::wrong);
    EXPECT_THAT(judgement.account, HasSubstr("compute-bound by compute-roof"));
}

TEST(Judge, TheWrongLevelOrRuleIsWrong) {
    EXPECT_EQ(judge("copy", copy(), said(Bound::bandwidth, "L2", "memory-roof")).result, TruthResult::wrong);
    EXPECT_EQ(judge("copy", copy(), said(Bound::bandwidth, "DRAM", "busy-memory")).result, TruthResult::wrong);
}

TEST(Judge, AnyOfSeveralRightVerdictsIsOk) {
    Planted planted = copy();
    planted.right = {{Bound::occupancy, {}, "few-warps"}, {Bound::latency}, {Bound::not_identifiable}};
    EXPECT_EQ(judge("few", planted, said(Bound::occupancy, "", "few-warps")).result, TruthResult::ok);
    EXPECT_EQ(judge("few", planted, said(Bound::latency, "", "waiting")).result, TruthResult::ok);
    EXPECT_EQ(judge("few", planted, said(Bound::not_identifiable, "L2", "half-busy")).result, TruthResult::ok);
    EXPECT_EQ(judge("few", planted, said(Bound::occupancy, "", "idle-sms")).result, TruthResult::wrong);
    EXPECT_EQ(judge("few", planted, said(Bound::bandwidth, "DRAM", "memory-roof")).result, TruthResult::wrong);
}

TEST(Judge, NoVerdictWhereThereIsARightOneCannotTell) {
    const Judgement judgement = judge("copy", copy(), said(Bound::not_identifiable, "", "no-bottleneck"));
    EXPECT_EQ(judgement.result, TruthResult::cannot_tell);
    EXPECT_NE(judgement.account, "");
}

TEST(Judge, AVerdictWhereThereIsNoneIsWrong) {
    Planted planted = copy();
    planted.right = {{Bound::not_identifiable, {}, "two-roofs"}};
    EXPECT_EQ(judge("tied", planted, said(Bound::not_identifiable, "", "two-roofs")).result, TruthResult::ok);
    EXPECT_EQ(judge("tied", planted, said(Bound::not_identifiable, "", "half-busy")).result, TruthResult::cannot_tell);
    EXPECT_EQ(judge("tied", planted, said(Bound::compute, "fp32_plain", "compute-roof")).result, TruthResult::wrong);
}

TEST(Judge, TheWholeMustBeOfTheSameBound) {
    KnownResult known = said(Bound::bandwidth, "DRAM", "memory-roof");
    known.explained.verdicts.model.bound = Bound::launch;
    EXPECT_EQ(judge("copy", copy(), known).result, TruthResult::wrong);
    known.explained.verdicts.model.bound = Bound::not_identifiable;
    EXPECT_EQ(judge("copy", copy(), known).result, TruthResult::cannot_tell);
}

TEST(Judge, AFigureMayBeOffByFivePercentAndNoMore) {
    const KnownResult known = said(Bound::bandwidth, "DRAM", "memory-roof");
    for (const auto& [measured, result] : {std::pair{104.9, TruthResult::ok},
                                           {95.1, TruthResult::ok},
                                           {106.0, TruthResult::wrong},
                                           {94.0, TruthResult::wrong},
                                           {std::numeric_limits<double>::quiet_NaN(), TruthResult::wrong}}) {
        Planted planted = copy();
        planted.figures = {figure(100, measured)};
        EXPECT_EQ(judge("copy", planted, known).result, result) << measured;
    }
}

TEST(Judge, AShareMayBeOffByFivePercentOfTheWhole) {
    const KnownResult known = said(Bound::bandwidth, "DRAM", "memory-roof");
    for (const auto& [measured, result] :
         {std::pair{0.24, TruthResult::ok}, {0.16, TruthResult::ok}, {0.26, TruthResult::wrong}}) {
        Planted planted = copy();
        planted.figures = {figure(0.20, measured, Tolerance::of_whole)};
        EXPECT_EQ(judge("copy", planted, known).result, result) << measured;
    }
}

TEST(Judge, OneWrongFigureOutweighsTheRightOnes) {
    Planted planted = copy();
    planted.figures = {figure(100, 100), figure(100, 50), figure(100, std::nullopt)};
    const Judgement judgement = judge("copy", planted, said(Bound::bandwidth, "DRAM", "memory-roof"));
    EXPECT_EQ(judgement.result, TruthResult::wrong);
    EXPECT_TRUE(judgement.figures[0].holds);
    EXPECT_FALSE(judgement.figures[1].holds);
}

TEST(Judge, AFigureThatKbenchDoesNotHaveCannotTell) {
    Planted planted = copy();
    planted.figures = {figure(100, std::nullopt)};
    EXPECT_EQ(judge("copy", planted, said(Bound::bandwidth, "DRAM", "memory-roof")).result, TruthResult::cannot_tell);
}

TEST(Judge, WhatIsImpossibleMustBeNamed) {
    Planted planted;
    planted.impossible = "the precision that ran";
    KnownResult known = said(Bound::compute, "fp32_plain", "compute-roof");
    EXPECT_EQ(judge("posing", planted, known).result, TruthResult::wrong);
    known.explained.impossible = {"an SM has 4 schedulers"};
    EXPECT_EQ(judge("posing", planted, known).result, TruthResult::wrong);
    known.explained.impossible = {"530 % of the time; suspect, in this order, the precision that ran, the work"};
    EXPECT_EQ(judge("posing", planted, known).result, TruthResult::ok);
}

TEST(Judge, AFalseAlarmOfImpossibleFiguresIsWrong) {
    KnownResult known = said(Bound::bandwidth, "DRAM", "memory-roof");
    known.explained.impossible = {"FLOPs and counted bytes need 106 % of the time"};
    EXPECT_EQ(judge("copy", copy(), known).result, TruthResult::wrong);
}

TEST(Judge, RoofsThatAreSuspectedFirstCannotTell) {
    KnownResult known = said(Bound::not_identifiable, "", "impossible");
    known.explained.impossible = {"187 % of the time; suspect, in this order, the roofs (did other work ...)"};
    EXPECT_EQ(judge("copy", copy(), known).result, TruthResult::cannot_tell);
    known.explained.impossible.push_back("the SMs are active for 160 % of the cycles");
    EXPECT_EQ(judge("copy", copy(), known).result, TruthResult::wrong);
}

TEST(Judge, WhatWasNotMeasuredCannotTell) {
    KnownResult known;
    known.unavailable = "no permission to read counters";
    const Judgement judgement = judge("copy", copy(), known);
    EXPECT_EQ(judgement.result, TruthResult::cannot_tell);
    EXPECT_EQ(judgement.why, "no permission to read counters");
}

Judgement row(TruthResult result) {
    Judgement judgement;
    judgement.result = result;
    return judgement;
}

TEST(Matrix, PassesWithoutAWrongTruthAndAtMostOneThatCannotBeTold) {
    using enum TruthResult;
    EXPECT_TRUE(passes(std::vector{row(ok), row(cannot_tell), row(not_here)}));
    EXPECT_FALSE(passes(std::vector{row(ok), row(cannot_tell), row(cannot_tell)}));
    EXPECT_FALSE(passes(std::vector{row(ok), row(wrong)}));
    EXPECT_FALSE(passes(std::vector{row(not_here), row(cannot_tell)})) << "nothing was shown to be right";
}

TEST(Matrix, ShowsEveryFigureAndTheAccountOfWhatIsNotOk) {
    Planted planted = copy();
    planted.figures = {figure(100, 110), figure(1, std::nullopt)};
    const Judgement wrong = judge("copy", planted, said(Bound::bandwidth, "DRAM", "memory-roof"));
    const std::string text = matrix_text(std::vector{wrong});
    EXPECT_THAT(text, HasSubstr("| copy  | a copy  | bandwidth-bound, DRAM by memory-roof |"));
    EXPECT_THAT(text, HasSubstr("+10.00 | WRONG: bytes"));
    EXPECT_THAT(text, HasSubstr("not issuing"));
    EXPECT_TRUE(text.ends_with("1 truths: 0 ok, 0 unknown, 1 WRONG, 0 not here: FAILED\n")) << text;
    const nlohmann::ordered_json document = matrix_json(std::vector{wrong}, 7);
    EXPECT_EQ(document["seed"], 7);
    EXPECT_EQ(document["passed"], false);
    EXPECT_EQ(document["truths"][0]["result"], "WRONG");
    EXPECT_EQ(document["truths"][0]["figures"][0]["measured"], 110);
    EXPECT_TRUE(document["truths"][0]["figures"][1]["measured"].is_null());
}

TEST(Truths, HaveNamesOfTheirOwn) {
    std::set<std::string_view> names;
    for (const Truth& truth : truths()) EXPECT_TRUE(names.insert(truth.name).second) << truth.name;
    EXPECT_GT(names.size(), 20U);
}

/// A CPU's look at `ms` of work, with a roof of DRAM.
HostLook look(double ms, double triad = 150) {
    HostLook look{.work_ms = ms};
    Ceiling& roof = look.roofs.ceilings.emplace_back();
    roof.name = "cpu_dram_triad";
    roof.value = Quantity::measured(triad);
    return look;
}

/// A step at the roof of FMA or, where `is_memory`, of DRAM.
KnownResult timed(double ms, bool is_memory) {
    KnownResult known = said(Bound::bandwidth, "DRAM", "memory-roof");
    known.result->points[0].end_to_end.emplace().latency.summary_ms.median = ms;
    RoofTime& roof = known.explained.roof_times[0].work.emplace_back();
    roof.roof.ceiling = is_memory ? "cpu_dram_read" : "avx512_fp32";
    if (is_memory) roof.level = Level::dram;
    return known;
}

/// A truth's figures are of one time, and what is planted must be the same before, while and after it is measured.
TEST(Disturbance, IsTheWorkThatTookAnotherTime) {
    EXPECT_EQ(disturbance(look(10), timed(10.2, false), look(10.25)), "");
    EXPECT_EQ(disturbance({}, timed(10, false), {}), "") << "a GPU's is not watched";
    EXPECT_THAT(disturbance(look(18.2), timed(18.2, false), look(23.3)),
                HasSubstr("took 18.2 ms before and 23.3 ms afterwards"));
    EXPECT_NE(disturbance(look(10), timed(10, false), look(9.4)), "") << "faster is another pace, too";
    EXPECT_THAT(disturbance(look(10), timed(10.6, false), look(10)), HasSubstr("10.6 ms when it was timed"));
    KnownResult grown = timed(10, false);
    grown.result->points[0].size_scaling.emplace_back().times.emplace_back().us.median = 10600;
    EXPECT_THAT(disturbance(look(10), grown, look(10)), HasSubstr("10.6 ms beside other sizes"));
}

TEST(Disturbance, IsTheBaselineBesideThievesThatMoved) {
    KnownResult known = timed(10, false);
    BandwidthTheft& theft = known.result->points[0].theft.emplace();
    const auto run = [&](std::string takes, double share, double ms) {
        ThiefRun& added = theft.runs.emplace_back();
        added.takes = std::move(takes);
        added.share = share;
        added.latency_ms = ms;
    };
    run("nothing", 0, 12);
    run("compute", 0, 14);
    run("compute", 0, 14.4);
    run("dram", 0.3, 20);
    EXPECT_EQ(disturbance(look(10), known, look(10)), "") << "what a thief takes, or only its clock, changes the time";
    run("compute", 0, 18);
    EXPECT_THAT(disturbance(look(10), known, look(10)), HasSubstr("the work took 14 to 18 ms"));
    theft = {.unavailable = "work and thief took turns", .runs = {}};
    EXPECT_EQ(disturbance(look(10), known, look(10)), "work and thief took turns");
}

TEST(Disturbance, IsTheRoofThatMoved) {
    EXPECT_EQ(disturbance(look(10, 150), timed(10, true), look(10, 145)), "");
    EXPECT_THAT(disturbance(look(10, 150), timed(10, true), look(10, 120)),
                HasSubstr("cpu_dram_triad was between 120 and 150"));
    EXPECT_EQ(disturbance(look(10, 150), timed(10, false), look(10, 120)), "") << "no roof of what computes";
    KnownResult between = timed(10, true);
    between.result->points[0].conditions.roofs = {{"cpu_dram_triad", {148, 149, 150, 151}}};
    EXPECT_EQ(disturbance(look(10), between, look(10)), "");
    between.result->points[0].conditions.roofs[0].values = {107, 108, 109, 150};
    EXPECT_NE(disturbance(look(10), between, look(10)), "");
}

TEST(Matrix, NamesTheAttemptThatWasNotDisturbed) {
    Judgement row = judge("copy", copy(), said(Bound::bandwidth, "DRAM", "memory-roof"));
    EXPECT_THAT(matrix_text(std::vector{row}), testing::Not(HasSubstr("attempt")));
    row.attempts = 3;
    EXPECT_THAT(matrix_text(std::vector{row}), HasSubstr("ok at attempt 3"));
    EXPECT_EQ(matrix_json(std::vector{row}, 1)["truths"][0]["attempts"], 3);
}

}  // namespace
}  // namespace kbench
