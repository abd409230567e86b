// What the time breakdown corrects and what it is checked with: records, drift, marginal costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/explain/time_breakdown.h"
#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::breakdown_of, known::Step;
using testing::HasSubstr;
using testing::StartsWith;

/// Recorded as of schema 3: a record of 2 us is of a kernel of 1.5, in a chain that takes 2.5 with records (+1.0);
/// one of 10 us in a chain of 11 that is 9 without (+2.0).
void add_records(Point& point, double unprofiled_ms) {
    point.activity.unprofiled_ms = unprofiled_ms;
    point.activity.inflation = {{1.5, 2, 2.5}, {9, 10, 11}};
}

double recording_of(double kernel_us, int kernels = 1) {
    Result result = known::result_of({{.us = kernel_us * kernels, .kernels = kernels}});
    add_records(result.points[0], 1);
    return breakdown_of(result).total[Line::recording];
}

TEST(Recording, IsCalibratedByTheRecordsLength) {
    EXPECT_NEAR(recording_of(2), -1.0, 1e-9);
    EXPECT_NEAR(recording_of(10), -2.0, 1e-9);
    EXPECT_NEAR(recording_of(6), -1.5, 1e-9);   // half-way
    EXPECT_NEAR(recording_of(4), -1.25, 1e-9);  // a quarter of the way
    EXPECT_NEAR(recording_of(1), -1.0, 1e-9);   // as at the nearest
    EXPECT_NEAR(recording_of(500), -2.0, 1e-9);
}

TEST(Recording, IsPaidByEveryKernel) { EXPECT_NEAR(recording_of(2, 3), -3.0, 1e-9); }

TEST(Recording, OfOlderFilesIsWhatTheRecordItselfIsLonger) {
    Result result = known::result_of({{.us = 2}});
    result.points[0].activity.inflation = {{1.5, 2, 2.5}};
    const TimeBreakdown breakdown = breakdown_of(result);
    EXPECT_NEAR(breakdown.total[Line::recording], -0.5, 1e-9);
    EXPECT_EQ(breakdown.total[Line::drift], 0);
    EXPECT_NEAR(breakdown.total[Line::residual], 0.5, 1e-9);
}

TEST(Recording, WithoutACalibrationIsNothing) {
    Result result = known::result_of({{.us = 2}});
    EXPECT_EQ(breakdown_of(result).total[Line::recording], 0);
}

TEST(Drift, IsTheTimingRunAgainstTheRunsBesideTheRecords) {
    // 100 us in records that add 2; 97 us beside them, 102 when timed. What records show less their part is 98.
    Result result = known::result_of({{.us = 100, .dram = 0.5}}, known::gpu_roofs(), 2);
    add_records(result.points[0], 0.097);
    const TimeBreakdown breakdown = breakdown_of(result);
    EXPECT_NEAR(breakdown.total[Line::recording], -2, 1e-9);
    EXPECT_NEAR(breakdown.total[Line::drift], 5, 1e-9);
    EXPECT_NEAR(breakdown.total[Line::residual], -1, 1e-9);
    EXPECT_NEAR(breakdown.total.total_us(), 102, 1e-9);
    EXPECT_NEAR(breakdown.unexplained_share(), 6 / 102.0, 1e-9);
    EXPECT_FALSE(breakdown.closes());
    // A faster timing run.
    add_records(result.points[0], 0.105);
    EXPECT_NEAR(breakdown_of(result).total[Line::drift], -3, 1e-9);
}

/// The end-to-end time is in the drift and in the sum, so that it is missing from the residual, whatever it is.
TEST(Drift, OfALatencyHalfAsLongAgainIsNoClosure) {
    Result result = known::result_of({{.us = 100, .dram = 0.5}});
    add_records(result.points[0], 0.098);
    Summary& latency = result.points[0].end_to_end->latency.summary_ms;
    latency.median = 0.098;
    EXPECT_TRUE(breakdown_of(result).closes());
    latency.median *= 1.5;
    EXPECT_NEAR(breakdown_of(result).residual_share(), 0, 1e-9);
    EXPECT_FALSE(breakdown_of(result).closes());
    EXPECT_NEAR(breakdown_of(result).unexplained_share(), 1 / 3.0, 1e-9);
}

TEST(Drift, BelongsToNoStep) {
    Result result = known::result_of({{.us = 100, .dram = 0.5}}, known::gpu_roofs(), 2);
    add_records(result.points[0], 0.097);
    const known::Accounts accounts = known::accounts_of(result);
    const TimeBreakdown& breakdown = accounts.breakdown;
    for (const Lines& lines :
         {lines_of(accounts.facts.steps[0]), breakdown.by_layer[0].lines, breakdown.by_op[0].lines}) {
        EXPECT_NEAR(lines.total_us(), 100, 1e-9);
        for (const Line line : {Line::recording, Line::drift, Line::residual}) EXPECT_EQ(lines[line], 0);
    }
}

/// Two layer norms of 100 us, a GEMM of 200, gaps of 1; the marginal cost of the layer norms has this interval.
/// The records of each add 2 us.
Result with_marginal(double low_ms, double median_ms, double high_ms, bool recorded) {
    const Step norm{.us = 100, .gap_us = 1}, gemm{.op = "gemm", .us = 200, .gap_us = 1};
    Result result = known::result_of({norm, gemm, norm}, known::gpu_roofs(), recorded ? -6 : 0);
    if (recorded) add_records(result.points[0], result.points[0].end_to_end->latency.summary_ms.median);
    MarginalCost& cost = result.points[0].marginal.emplace_back();
    cost.op = "layernorm";
    cost.steps = 2;
    cost.difference_ms.summary_ms.median = median_ms;
    cost.difference_ms.summary_ms.ci_low = low_ms;
    cost.difference_ms.summary_ms.ci_high = high_ms;
    return result;
}

MarginalCheck check_of(const Result& result) { return breakdown_of(result).marginal.at(0); }

TEST(Marginal, StandsBesideItsOpsShareWithGaps) {
    const MarginalCheck check = check_of(with_marginal(0.200, 0.203, 0.206, false));
    EXPECT_EQ(check.op, "layernorm");
    EXPECT_NEAR(check.breakdown_ms, 0.202, 1e-9);
    EXPECT_NEAR(check.breakdown_low_ms, 0.202, 1e-9);
    EXPECT_NEAR(check.breakdown_high_ms, 0.202, 1e-9);
    EXPECT_NEAR(check.marginal_ms, 0.203, 1e-9);
    EXPECT_NEAR(check.marginal_low_ms, 0.200, 1e-9);
    EXPECT_NEAR(check.marginal_high_ms, 0.206, 1e-9);
    EXPECT_TRUE(check.agrees);
    EXPECT_EQ(check.finding, "");
}

TEST(Marginal, LeavesTheCorrectionForRecordsOpen) {
    const MarginalCheck check = check_of(with_marginal(0.197, 0.1975, 0.198, true));
    EXPECT_NEAR(check.breakdown_ms, 0.198, 1e-9);
    EXPECT_NEAR(check.breakdown_low_ms, 0.198, 1e-9);
    EXPECT_NEAR(check.breakdown_high_ms, 0.202, 1e-9);
    EXPECT_TRUE(check_of(with_marginal(0.2015, 0.203, 0.204, true)).agrees);
    EXPECT_FALSE(check_of(with_marginal(0.1960, 0.197, 0.1975, true)).agrees);
    EXPECT_FALSE(check_of(with_marginal(0.2025, 0.203, 0.204, true)).agrees);
}

TEST(Marginal, RecordsMayAlsoShorten) {
    Result result = with_marginal(0.2, 0.2, 0.2, true);
    result.points[0].activity.inflation = {{9, 10, 8}};  // -1 us a kernel
    const MarginalCheck check = check_of(result);
    EXPECT_NEAR(check.breakdown_ms, 0.204, 1e-9);
    // The time breakdown then has 403 + 3 against 397: -9 are residual, and as large a share of the 202 us is open.
    const double open = 9.0 / 397 * 0.202;
    EXPECT_NEAR(check.breakdown_low_ms, 0.202 - open, 1e-9);
    EXPECT_NEAR(check.breakdown_high_ms, 0.204 + open, 1e-9);
}

TEST(Marginal, MeetsAtTheEndsOfItsInterval) {
    const double share_ms = check_of(with_marginal(0, 0, 0, false)).breakdown_low_ms;
    EXPECT_TRUE(check_of(with_marginal(share_ms, 0.3, 0.4, false)).agrees);
    EXPECT_TRUE(check_of(with_marginal(0.1, 0.15, share_ms, false)).agrees);
    EXPECT_FALSE(check_of(with_marginal(share_ms * 1.001, 0.3, 0.4, false)).agrees);
    EXPECT_FALSE(check_of(with_marginal(0.1, 0.15, share_ms * 0.999, false)).agrees);
}

TEST(Marginal, SaysByHowMuchAndWhyItDiffers) {
    EXPECT_THAT(check_of(with_marginal(0.100, 0.101, 0.102, false)).finding,
                StartsWith("50 % less than the breakdown's share: more than a warm cache can save"));
    EXPECT_THAT(check_of(with_marginal(0.250, 0.2525, 0.260, false)).finding,
                StartsWith("25 % more than the breakdown's share: the repeated step evicts"));
}

TEST(Marginal, ACacheSavesNoMoreThanDramTrafficTakes) {
    const auto finding = [](double dram) {
        const Step norm{.us = 100, .gap_us = 1, .dram = dram, .unfused = dram};
        Result result = known::result_of({norm, Step{.op = "gemm", .us = 200}, norm});
        MarginalCost& cost = result.points[0].marginal.emplace_back();
        cost.op = "layernorm";
        cost.difference_ms.summary_ms = {.n = 20, .median = 0.057, .ci_low = 0.056, .ci_high = 0.058};
        return check_of(result).finding;
    };
    EXPECT_THAT(finding(0.2), StartsWith("72 % less than the breakdown's share: more than a warm cache can save"));
    EXPECT_THAT(finding(0.6), StartsWith("72 % less than the breakdown's share: the repeated step finds its operands"));
}

TEST(Marginal, WhatTheWholeBreakdownLacksWidensItsShare) {
    // End to end takes 413 us, of which 10 are residual, and in the second half 10 are drift.
    Result result = with_marginal(0.2, 0.2, 0.2, false);
    result.points[0].end_to_end->latency.summary_ms.median = 0.413;
    const double open = 10.0 / 413 * 0.202;
    MarginalCheck check = check_of(result);
    EXPECT_NEAR(check.breakdown_low_ms, 0.202 - open, 1e-9);
    EXPECT_NEAR(check.breakdown_high_ms, 0.202 + open, 1e-9);
    result.points[0].activity.unprofiled_ms = 0.403;
    check = check_of(result);
    EXPECT_NEAR(check.breakdown_low_ms, 0.202 - open, 1e-9);
    EXPECT_NEAR(check.breakdown_high_ms, 0.202 + open, 1e-9);
}

TEST(Marginal, OfAResultThatClaimsToTakeNoTimeIsFinite) {
    Result result = with_marginal(0.2, 0.2, 0.2, true);
    result.points[0].end_to_end->latency.summary_ms.median = 0;
    const MarginalCheck check = check_of(result);
    EXPECT_TRUE(std::isfinite(check.breakdown_low_ms) && std::isfinite(check.breakdown_high_ms));
    EXPECT_EQ(breakdown_of(result).residual_share(), 0);
}

TEST(Marginal, OfAnOpWithoutStepsHasNoFinding) {
    Result result = with_marginal(0.2, 0.2, 0.2, false);
    result.points[0].marginal[0].op = "softmax";
    const MarginalCheck check = check_of(result);
    EXPECT_EQ(check.breakdown_ms, 0);
    EXPECT_FALSE(check.agrees);
    EXPECT_EQ(check.finding, "");
}

}  // namespace
}  // namespace kbench
