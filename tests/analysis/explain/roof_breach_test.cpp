// Steps that were faster than a roof allows.
#include "analysis/explain/roof_breach.h"

#include <gtest/gtest.h>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

/// FLOPs and counted bytes alone: what nobody counted a cache may have kept.
TEST(RoofBreach, IsTheStepFarthestBeyondARoof) {
    const Result result = known::result_of(
        {{.dram = 1.1}, {.op = "gemm", .compute = 1.3}, {.dram = 1.2}, {.unfused = 3, .counted = false}});
    const std::optional<RoofBreach> worst = worst_breach(result);
    ASSERT_TRUE(worst);
    EXPECT_EQ(worst->step, "1 h.0.ln_1");
    EXPECT_EQ(worst->ceiling, "fp16_tensor");
    EXPECT_NEAR(worst->excess, 0.3, 1e-9);
}

TEST(RoofBreach, BeginsAtTwoPercent) {
    EXPECT_FALSE(worst_breach(known::result_of({{.dram = 1.019}})));
    EXPECT_TRUE(worst_breach(known::result_of({{.dram = 1.021}})));
    EXPECT_FALSE(worst_breach(known::result_of({{.unfused = 3, .counted = false}})));
}

TEST(RoofBreach, CountsThePaddingOfFlopsAndNotOfBytes) {
    Result result = known::result_of({{.op = "gemm", .compute = 0.9, .dram = 0.95}});
    EXPECT_FALSE(worst_breach(result));
    StepResult& step = result.points[0].steps[0];
    step.padding_flops = 0.2 * step.cost.flops;
    EXPECT_NEAR(worst_breach(result)->excess, 0.08, 1e-9);
    step.cost.flops = 0;
    EXPECT_EQ(make_step_facts(step).executed_over_useful(), 1) << "without FLOPs of the model no factor";
}

/// An algorithm with fewer multiplications may be faster than the definition's FLOPs at the roof.
TEST(RoofBreach, LeavesOutFlopsThatTheAlgorithmSpares) {
    Result result = known::result_of({{.op = "gemm", .compute = 1.3}});
    StepResult& step = result.points[0].steps[0];
    EXPECT_NEAR(worst_breach(result)->excess, 0.3, 1e-9);
    step.spared_flops = 0.5 * step.cost.flops;
    EXPECT_FALSE(worst_breach(result));
    step.spared_flops = 0.1 * step.cost.flops;
    EXPECT_NEAR(worst_breach(result)->excess, 0.17, 1e-9);
    step.spared_flops = 0.5 * step.cost.flops;
    step.padding_flops = 0.4 * step.cost.flops;  // the algorithm executes these besides
    EXPECT_NEAR(make_step_facts(step).executed_over_useful(), 1.8, 1e-9);
    step.spared_flops = 2 * step.cost.flops;
    EXPECT_EQ(make_step_facts(step).executed_over_useful(), 1);
    EXPECT_FALSE(worst_breach(result));
}

TEST(RoofBreach, OfAStepWithoutATimeIsNone) {
    Result result = known::result_of({{.us = 0, .kernels = 0}});
    result.points[0].steps[0].cost.flops = 1e12;
    EXPECT_FALSE(worst_breach(result));
}

}  // namespace
}  // namespace kbench
