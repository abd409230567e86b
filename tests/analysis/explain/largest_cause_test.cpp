// Verdicts by the largest cause: each planted as most of a step's time, and two that are alike.
#include "analysis/explain/largest_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::Step;
using testing::HasSubstr;

Verdict verdict_of(const Step& step, double fixed_us, double slope_us, double longest_active = 0) {
    Result result = known::result_of({step});
    result.points[0].size_scaling = {known::make_sizes({0}, fixed_us, slope_us)};
    if (longest_active > 0)
        result.points[0].steps[0].counters["sm_cycles_active_max"] = longest_active * step.us * known::clock_mhz;
    return known::judged(result).steps[0];
}
void expect_cause(const Verdict& verdict, Bound bound, const std::string& level) {
    EXPECT_EQ(verdict.rule, "largest-cause");
    EXPECT_EQ(verdict.bound, bound);
    EXPECT_EQ(verdict.level, level);
}

TEST(LargestCause, IsTheBoundOfTheStep) {
    expect_cause(verdict_of({.op = "gemm", .compute = 0.5}, 20, 80), known::compute, "fp16_tensor");
    expect_cause(verdict_of({.us = 100, .dram = 0.5}, 20, 80), known::bandwidth, "DRAM");
    expect_cause(verdict_of({.op = "gemm", .compute = 0.2}, 70, 30), known::latency, "fixed time of kernels");
    expect_cause(verdict_of({.op = "gemm", .compute = 0.2}, 10, 90), known::latency, "main loop");
    expect_cause(verdict_of({.op = "gemm", .compute = 0.1, .active = 0.35, .issue = 0.3}, 10, 90, 1), known::occupancy,
                 "last wave");
}

TEST(LargestCause, NamesTheUnitThatIsBusyInAMainLoop) {
    expect_cause(verdict_of({.op = "gemm", .compute = 0.2, .units = {{"tensor_pipe_active", 70}}}, 10, 90),
                 known::compute, "tensor pipe");
    expect_cause(verdict_of({.op = "gemm", .compute = 0.2, .units = {{"pipe_shared_memory", 70}}}, 10, 90),
                 known::bandwidth, "shared memory");
}

/// Work and fixed time of 50 us each: neither is larger within their intervals, and both are named.
TEST(LargestCause, OfTwoThatAreAlikeDecidesNothing) {
    const Verdict verdict = verdict_of({.op = "gemm", .compute = 0.5, .occupancy_pct = 50, .units = {}}, 50, 50);
    EXPECT_NE(verdict.rule, "largest-cause");
    EXPECT_THAT(verdict.evidence, testing::Contains(HasSubstr("within their intervals it may be")));
}

TEST(LargestCause, OfAStepThatIsMostlyNotExplainedIsNone) {
    Result result = known::result_of({{.op = "gemm", .us = 100, .compute = 0.2}});
    result.points[0].size_scaling = {known::make_sizes({0}, 5, 25)};
    const known::Accounts accounts = known::accounts_of(result);
    EXPECT_FALSE(largest_cause(accounts.causes.steps[0], accounts.units[0], accounts.cycles.steps[0]));
    EXPECT_NE(accounts.verdicts.steps[0].rule, "largest-cause");
}

TEST(LargestCause, OfTheWholeNeedsFitsOfHalfOfIt) {
    Result result = known::result_of({{.us = 100, .compute = 0.2}, {.us = 90, .compute = 0.2}});
    result.points[0].size_scaling = {known::make_sizes({0}, 80, 20)};
    EXPECT_TRUE(largest_cause(known::accounts_of(result).causes.whole).has_value());
    result.points[0].size_scaling = {known::make_sizes({1}, 70, 20)};
    EXPECT_FALSE(largest_cause(known::accounts_of(result).causes.whole).has_value());
}

/// A roof that decides only perhaps leaves it to the largest cause.
TEST(LargestCause, DecidesWhereARoofIsNearItsThreshold) {
    const Step near{.us = 100, .dram = 0.605, .active = 0.95};
    EXPECT_EQ(known::judged(known::result_of({near})).steps[0].rule, "within-error");
    EXPECT_EQ(verdict_of(near, 10, 90).bound, known::bandwidth);
    EXPECT_EQ(verdict_of(near, 10, 90).level, "DRAM");
}

}  // namespace
}  // namespace kbench
