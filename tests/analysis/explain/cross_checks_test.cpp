// Quantities found in two ways, on numbers made by hand; see known_points.h.
#include "analysis/explain/cross_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/explain/explain.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

std::vector<CrossCheck> cross_checks_of(const Result& result) {
    return explain(result, result.points.front()).cross_checks;
}

TEST(CrossChecks, TheTensorPipeStandsBesideTheFlopsOverItsRoof) {
    Result result = known::result_of(
        {{.op = "gemm", .compute = 0.6, .active = 0.8, .units = {{"tensor_pipe_active", 70}}}, {.compute = 0.5}});
    const std::vector<CrossCheck> cross_checks = cross_checks_of(result);
    ASSERT_EQ(cross_checks.size(), 1) << "the layer norm has no tensor cores, and grids are not known";
    EXPECT_NEAR(cross_checks[0].first_us, 60, 1e-9);
    EXPECT_NEAR(cross_checks[0].second_us, 56, 1e-9);  // 70 % of 80 us
}

/// A roof that is measured at half of what the unit can do closes with itself, but not with the pipe's cycles.
TEST(CrossChecks, ARoofOfHalfTheUnitDoesNotClose) {
    CeilingRun halved = known::without(known::gpu_roofs(), "fp16_tensor");
    halved.ceilings.push_back(known::ceiling("fp16_tensor", known::tensor_flops * 1e-6 / 2));
    Result result =
        known::result_of({{.op = "gemm", .compute = 0.4, .units = {{"tensor_pipe_active", 40}}}}, known::gpu_roofs());
    EXPECT_NEAR(cross_checks_of(result)[0].second_us / cross_checks_of(result)[0].first_us, 1, 1e-9);
    result.ceilings = halved;
    EXPECT_NEAR(cross_checks_of(result)[0].second_us / cross_checks_of(result)[0].first_us, 0.5, 1e-9);
}

TEST(CrossChecks, LastWavesStandBesideSmsWithoutAWarp) {
    Result result = known::result_of({{.active = 0.8}});
    StepResult& step = result.points[0].steps[0];
    step.counters["sm_cycles_active_max"] = step.counters.at("sm_cycles_active") * 1.1;
    EXPECT_TRUE(cross_checks_of(result).empty()) << "the wave of its kernel is not known";
    step.kernels[0].lost_in_last_wave_pct = {10.0, Origin::derived, ""};
    const std::vector<CrossCheck> cross_checks = cross_checks_of(result);
    ASSERT_EQ(cross_checks.size(), 1);
    EXPECT_NEAR(cross_checks[0].first_us, 8, 1e-9);  // 88 of 100 us active at most, 80 in the mean
    EXPECT_NEAR(cross_checks[0].second_us, 10, 1e-9);
}

TEST(CrossChecks, MarginalCostsAreTheWholeOnlyWhereEveryOpWasMeasured) {
    Result result = known::result_of({{.us = 60}, {.op = "gemm", .us = 40}});
    Point& point = result.points[0];
    const auto cost = [](const char* op, double ms) {
        MarginalCost marginal;
        marginal.op = op;
        marginal.difference_ms.summary_ms.median = ms;
        return marginal;
    };
    point.marginal = {cost("layernorm", 0.058)};
    EXPECT_TRUE(cross_checks_of(result).empty());
    point.marginal.push_back(cost("gemm", 0.039));
    const std::vector<CrossCheck> cross_checks = cross_checks_of(result);
    ASSERT_EQ(cross_checks.size(), 1);
    EXPECT_NEAR(cross_checks[0].first_us, 100, 1e-9);
    EXPECT_NEAR(cross_checks[0].second_us, 97, 1e-9);
}

TEST(CrossChecks, LastWavesOfAStepAreKnownWhereThoseOfAllItsKernelsAre) {
    Result result = known::result_of({{.kernels = 2, .active = 0.8}});
    StepResult& step = result.points[0].steps[0];
    step.counters["sm_cycles_active_max"] = step.counters.at("sm_cycles_active") * 1.1;
    step.kernels[1].lost_in_last_wave_pct = {10.0, Origin::derived, ""};
    EXPECT_TRUE(cross_checks_of(result).empty());
    step.kernels[0].lost_in_last_wave_pct = {30.0, Origin::derived, ""};
    ASSERT_EQ(cross_checks_of(result).size(), 1);
    EXPECT_NEAR(cross_checks_of(result)[0].second_us, 0.1 * 50 + 0.3 * 50, 1e-9);
}

TEST(CrossChecks, StepsWithoutRecordedKernelsHaveNoLastWave) {
    Result result = known::result_of({{.active = 0.8}, {.kernels = 0, .active = 0.8}});
    for (StepResult& step : result.points[0].steps)
        step.counters["sm_cycles_active_max"] = step.counters.at("sm_cycles_active") * 1.1;
    result.points[0].steps[0].kernels[0].lost_in_last_wave_pct = {10.0, Origin::derived, ""};
    ASSERT_EQ(cross_checks_of(result).size(), 1);
    EXPECT_NEAR(cross_checks_of(result)[0].first_us, 8, 1e-9);
}

TEST(CrossChecks, NothingStandsBesideAQuantityOfZero) {
    Result result = known::result_of({{.active = 0.8}});
    StepResult& step = result.points[0].steps[0];
    step.counters["sm_cycles_active_max"] = step.counters.at("sm_cycles_active");  // no SM waits for another one
    step.kernels[0].lost_in_last_wave_pct = {10.0, Origin::derived, ""};
    EXPECT_TRUE(cross_checks_of(result).empty());
}

TEST(CrossChecks, AStepWithoutATimeAddsToNeitherSide) {
    Result result = known::result_of({{.op = "gemm", .compute = 0.6, .units = {{"tensor_pipe_active", 60}}},
                                      {.op = "gemm", .us = 0, .kernels = 0, .units = {{"tensor_pipe_active", 60}}}});
    result.points[0].steps[1].cost.flops = result.points[0].steps[0].cost.flops;
    ASSERT_EQ(cross_checks_of(result).size(), 1);
    EXPECT_NEAR(cross_checks_of(result)[0].first_us, 60, 1e-9);
}

}  // namespace
}  // namespace kbench
