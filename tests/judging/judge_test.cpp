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

/// A truth's figures are of one time, and what is planted must be the same before and after it.
TEST(MovedPace, IsTheWorkThatTookAnotherTimeAfterwards) {
    EXPECT_EQ(moved_pace(10, 10), "");
    EXPECT_EQ(moved_pace(10, 10.4), "");
    EXPECT_EQ(moved_pace(0, 0), "") << "a GPU's is not watched";
    EXPECT_THAT(moved_pace(18.2, 23.3), HasSubstr("took 18.2 ms before and 23.3 ms afterwards"));
    EXPECT_NE(moved_pace(10, 9.4), "") << "faster is another pace, too";
}

}  // namespace
}  // namespace kbench
