// The answer in short, of made-up explanations whose verdicts are known.
#include "analysis/explain/in_short.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Explanation bound_by(Bound bound, std::string level) {
    Explanation explanation;
    explanation.breakdown.end_to_end_us = 100;
    explanation.verdicts.model.bound = bound;
    explanation.verdicts.model.level = std::move(level);
    explanation.verdicts.model.rule = "majority";
    explanation.verdicts.model.margin = 0.5;
    for (const Bound one : {bound, Bound::latency, bound, bound}) {
        Verdict& step = explanation.verdicts.steps.emplace_back();
        step.bound = one;
        explanation.facts.steps.emplace_back().time_us = 25;
    }
    return explanation;
}

void add_dram(Explanation& explanation, double ms) {
    explanation.attribution.levels.push_back({.level = Level::dram, .bytes = 1e9, .ms = ms});
}

TEST(InShort, AMemoryThatBindsIsYesAndIsNamed) {
    Explanation explanation = bound_by(Bound::bandwidth, "DRAM");
    add_dram(explanation, 0.08);
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::yes);
    EXPECT_EQ(
        bandwidth_bound(explanation).why,
        "75 % of the steps' time is bandwidth-bound (mostly DRAM); DRAM traffic (measured) would take 80 % of the time at "
        "full bandwidth");
    EXPECT_EQ(bandwidth_bound(bound_by(Bound::bandwidth, "L2")).why,
              "75 % of the steps' time is bandwidth-bound (mostly L2)");
    explanation.verdicts.model.rule = "model-cause";
    explanation.verdicts.model.evidence = {"44 % of the end-to-end time has this cause"};
    EXPECT_THAT(bandwidth_bound(explanation).why,
                HasSubstr("44 % of the end-to-end time has this cause (mostly DRAM)"));
}

TEST(InShort, ItIsNotYesWhereAThiefOfDramCostNothing) {
    Explanation explanation = bound_by(Bound::bandwidth, "DRAM");
    explanation.interventions.model.dram = Influence::none;
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::cannot_tell);
    explanation.verdicts.model.level = "L2";
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::yes);
}

TEST(InShort, StepsThatAreBandwidthBoundAreNotNoWhateverDecidesTheWhole) {
    Explanation explanation = bound_by(Bound::bandwidth, "");
    explanation.verdicts.model.bound = Bound::launch;
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::cannot_tell);
    EXPECT_EQ(bandwidth_bound(explanation).why, "75 % of the steps' time is bandwidth-bound");
}

TEST(InShort, WhatAThiefShowedIsOfFewerSms) {
    Explanation explanation = bound_by(Bound::compute, "");
    explanation.theft.multiprocessors = 112;
    explanation.theft.model.emplace().dram.effects = {{0.25, {1.018, 1.01, 1.02}}};
    EXPECT_EQ(bandwidth_bound(explanation).why, "with 25 % less, 112 SMs took 1.8 % longer");
}

TEST(InShort, AnotherBoundIsNo) {
    for (const Bound bound : {Bound::compute, Bound::latency, Bound::launch, Bound::occupancy}) {
        const BandwidthBound found = bandwidth_bound(bound_by(bound, ""));
        EXPECT_EQ(found.answer, BandwidthAnswer::no) << name(bound);
        EXPECT_EQ(found.why, "it is " + std::string(name(bound)));
    }
}

TEST(InShort, ItIsNotNoWhereAThiefOfDramMadeItLonger) {
    Explanation explanation = bound_by(Bound::compute, "");
    explanation.interventions.model.dram = Influence::partly;
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::cannot_tell);
}

TEST(InShort, WithoutABoundItIsNoWhereHalfOfTheTimeHasAnotherOne) {
    Explanation explanation = bound_by(Bound::occupancy, "");
    Verdict& whole = explanation.verdicts.model;
    whole.bound = Bound::not_identifiable;
    whole.rule.clear();
    whole.undecided = 0.25;
    whole.may_be_one = true;
    explanation.suspects.whole = {{"L2", Finding::not_identifiable, 25, ""}};
    explanation.verdicts.steps[2].bound = Bound::not_identifiable;
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::no);
    EXPECT_EQ(bandwidth_bound(explanation).why, "at most 25 % of the steps' time is bandwidth-bound");
    EXPECT_THAT(
        binding_text(explanation),
        StartsWith(
            "no single one for certain: step by step occupancy-limited in 50 %, latency-bound in 25 %; for 25 %"));
    explanation.verdicts.steps[2].bound = Bound::bandwidth;
    explanation.verdicts.steps[3].bound = Bound::launch;
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::cannot_tell) << "no other one has more";
    explanation.verdicts.steps[2].bound = explanation.verdicts.steps[3].bound = Bound::not_identifiable;
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::cannot_tell) << "half of it may be";
}

TEST(InShort, WithoutABoundOnlyLittleTrafficOrAThiefSaysNo) {
    Explanation explanation = bound_by(Bound::not_identifiable, "");
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::cannot_tell);
    EXPECT_EQ(bandwidth_bound(explanation).why, "DRAM's traffic is not known");
    add_dram(explanation, 0.05);
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::cannot_tell);
    EXPECT_THAT(bandwidth_bound(explanation).why, HasSubstr("it may bind steps with"));
    explanation.interventions.model.dram = Influence::none;
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::no);
    explanation.verdicts.model.may_be_one = true;
    explanation.suspects.whole = {{"L2", Finding::not_identifiable, 60, ""}};
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::cannot_tell) << "L2 may be it";
    explanation.interventions.model.dram = Influence::unknown;
    explanation.missing = {"too few samples"};
    EXPECT_EQ(bandwidth_bound(explanation).why, "these figures carry no conclusion");
    EXPECT_EQ(bandwidth_bound(explanation).answer, BandwidthAnswer::cannot_tell);
}

TEST(InShort, WhatBindsIsToldByPartsOfTheTime) {
    EXPECT_EQ(binding_text(bound_by(Bound::compute, "fp16_tensor")),
              "compute-bound (fp16_tensor) in steps with 75 % of the time, latency-bound in 25 %");
    Explanation explanation = bound_by(Bound::launch, "");
    explanation.verdicts.model.rule = "largest-cause";
    explanation.verdicts.model.evidence = {"29 % of the time has this cause"};
    EXPECT_EQ(
        binding_text(explanation),
        "launch-bound: 29 % of the time has this cause; step by step launch-bound in 75 %, latency-bound in 25 %");
    EXPECT_EQ(binding_text(bound_by(Bound::not_identifiable, "")), "no single one: step by step latency-bound in 25 %");
    explanation = bound_by(Bound::not_identifiable, "");
    explanation.verdicts.model.may_be_one = true;
    explanation.verdicts.model.undecided = 0.75;
    explanation.suspects.whole = {{"tensor cores", Finding::not_identifiable, 60, ""}};
    EXPECT_EQ(binding_text(explanation),
              "for 75 % of the steps' time the bottleneck may be tensor cores (at most 0.0600 ms); step by step "
              "latency-bound in 25 %");
    explanation.suspects.whole.push_back({"L2", Finding::not_identifiable, 50, ""});
    EXPECT_THAT(binding_text(explanation), HasSubstr("the bottleneck is one of tensor cores"));
    EXPECT_EQ(binding_text(Explanation{}), "");
}

}  // namespace
}  // namespace kbench
