// Verdicts on layers and models from those on their steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/verdict.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::bandwidth, known::compute, known::latency, known::launch, known::occupancy, known::unknown;
using known::judged, known::letters, known::Step;
using testing::ElementsAre;
using testing::HasSubstr;

const Step dram_step{.layer = "h.0.copy", .dram = 0.9}, fma_step{.layer = "h.0.fma", .compute = 0.9, .issue = 0.9},
    chase_step{.layer = "h.0.chase", .occupancy_pct = 90},
    dull_step{.layer = "h.0.dull", .compute = 0.5, .active = 0.75, .issue = 0.5};

Step lasting(Step step, double us) {
    step.us = us;
    return step;
}

TEST(ModelVerdict, IsThatOfMostOfTheTime) {
    const Verdict verdict =
        judged(known::result_of({lasting(dram_step, 700), lasting(fma_step, 200), lasting(chase_step, 100)})).model;
    EXPECT_EQ(verdict.rule, "majority");
    EXPECT_EQ(verdict.bound, bandwidth);
    EXPECT_EQ(verdict.level, "DRAM");
    EXPECT_NEAR(verdict.margin, 0.4, 1e-9);
    EXPECT_EQ(verdict.evidence.front(), "70 % of the steps' time is bandwidth-bound (DRAM)");
    EXPECT_EQ(verdict.overturned_by, "steps with more than 20 % of the time changing their verdict");
}

TEST(ModelVerdict, HalfOfTheTimeIsEnough) {
    const auto rule_at = [](double us) {
        return judged(known::result_of({lasting(dram_step, us), lasting(fma_step, (1000 - us) * 0.6),
                                        lasting(chase_step, (1000 - us) * 0.4)}))
            .model.rule;
    };
    EXPECT_EQ(rule_at(490), "no-majority");
    EXPECT_EQ(rule_at(500), "majority");
    EXPECT_EQ(rule_at(510), "majority");
}

TEST(ModelVerdict, HalvesOfTwoBoundsAreNoMajority) {
    for (const bool swapped : {false, true}) {
        const Verdict verdict =
            judged(known::result_of({swapped ? fma_step : dram_step, swapped ? dram_step : fma_step})).model;
        EXPECT_EQ(verdict.rule, "no-majority");
        EXPECT_EQ(verdict.bound, unknown);
    }
}

TEST(ModelVerdict, SumsABoundOverItsLevelsAndNamesTheLongest) {
    const Step l2_step{.layer = "h.0.l2", .l2 = 0.9};
    const Verdict verdict =
        judged(known::result_of({lasting(dram_step, 200), lasting(l2_step, 350), lasting(fma_step, 450)})).model;
    EXPECT_EQ(verdict.rule, "majority");
    EXPECT_EQ(verdict.bound, bandwidth);
    EXPECT_EQ(verdict.level, "L2");
}

TEST(ModelVerdict, OfStepsThatNothingBindsIsNotIdentifiable) {
    const Verdict verdict = judged(known::result_of({lasting(dull_step, 600), lasting(dram_step, 400)})).model;
    EXPECT_EQ(verdict.rule, "majority");
    EXPECT_EQ(verdict.bound, unknown);
}

TEST(ModelVerdict, GapsBindItFromThirtyPercentOfTheEndToEndTime) {
    const auto verdict_at = [](double gap_us) {
        Step step = lasting(dram_step, 100 - gap_us);
        step.gap_us = gap_us;
        return judged(known::result_of({step})).model;
    };
    EXPECT_EQ(verdict_at(29).rule, "majority");
    EXPECT_EQ(verdict_at(29).bound, bandwidth);
    const Verdict verdict = verdict_at(30);
    EXPECT_EQ(verdict.rule, "model-gaps");
    EXPECT_EQ(verdict.bound, launch);
    EXPECT_EQ(verdict.level, "");
    EXPECT_EQ(letters(verdict.hypotheses), "?RRCR");
    EXPECT_THAT(verdict.evidence.front(), HasSubstr("30 % of the end-to-end time"));
    EXPECT_NEAR(verdict_at(45).margin, 0.5, 1e-9);
}

TEST(ModelVerdict, RejectsWhatStepsWithFourFifthsOfTheTimeReject) {
    const auto letters_at = [](double us) {
        return letters(
            judged(known::result_of({lasting(dram_step, us), lasting(dull_step, 1000 - us)})).model.hypotheses);
    };
    // dull_step says "?" of compute (50 % of its roof), latency and occupancy; R of bandwidth and launch.
    EXPECT_EQ(letters_at(790), "C??R?");
    EXPECT_EQ(letters_at(800), "CRRRR");
    EXPECT_EQ(letters_at(810), "CRRRR");
}

TEST(ModelVerdict, WithoutATimeIsNotIdentifiable) {
    const Verdict untimed = judged(known::result_of({{.us = 0, .kernels = 0}})).model;
    EXPECT_EQ(untimed.bound, unknown);
    EXPECT_EQ(untimed.rule, "no-majority");
    EXPECT_THAT(untimed.evidence, ElementsAre("no step was timed"));
    // Beside a timed step it is not even mentioned.
    EXPECT_EQ(judged(known::result_of({dram_step, {.us = 0, .kernels = 0}})).model.evidence.size(), 1);
    Result skipped = known::result_of({dram_step});
    skipped.points.front().end_to_end.reset();
    const Verdicts none = judged(skipped);
    EXPECT_TRUE(none.steps.empty());
    EXPECT_EQ(none.model.bound, unknown);
}

TEST(LayerVerdicts, JoinTheSameLayerOfAllBlocks) {
    Step second = fma_step;
    second.layer = "h.1.copy";
    const Verdicts verdicts = judged(known::result_of({lasting(dram_step, 80), fma_step, lasting(second, 20)}));
    ASSERT_EQ(verdicts.layers.size(), 2);
    EXPECT_EQ(verdicts.layers[0].subject, "h.*.copy");
    EXPECT_EQ(verdicts.layers[0].bound, bandwidth);
    EXPECT_NEAR(verdicts.layers[0].margin, 0.6, 1e-9);
    EXPECT_EQ(verdicts.layers[1].subject, "h.*.fma");
    EXPECT_EQ(verdicts.layers[1].bound, compute);
    EXPECT_EQ(verdicts.steps[1].subject, "1 h.0.fma");
}

}  // namespace
}  // namespace kbench
