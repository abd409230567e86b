// Comparison: ratios with intervals, what they follow, changes, cost; on results whose answers are known, and on the
// recorded ones.
#include "analysis/compare/compare.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "tests/analysis/compare/compare_example.h"
#include "tests/analysis/golden.h"
#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using compare_example::copy_and_product;
using compare_example::fused;
using compare_example::point;
using compare_example::run;
using compare_example::step;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string text_of(const PointComparison& compared, const std::string& about) {
    for (const Evidence& evidence : compared.evidence)
        if (evidence.about == about) return evidence.text;
    return {};
}

double share(const std::array<double, fit_count>& shares, Fit fit) { return shares[static_cast<std::size_t>(fit)]; }

/// Two runs of a copy and two products, the second on a machine with these roofs and so many times slower.
std::vector<NamedResult> two_machines(double gb_per_s, double tflop_per_s, double slower_bytes, double slower_flops) {
    const double b_ms = (100 * slower_bytes + 800 * slower_flops) * 1e-3;
    return {run("fast", 1000, 10, point(copy_and_product(1, 1), 0.9, 0.89, 0.91)),
            run("slow", gb_per_s, tflop_per_s,
                point(copy_and_product(slower_bytes, slower_flops), b_ms, b_ms * 0.99, b_ms * 1.01))};
}

TEST(Interval, AQuotientTakesTheEndsThatAreFarthestApart) {
    const Interval ratio = quotient({20, 18, 24}, {10, 9, 12});
    EXPECT_DOUBLE_EQ(ratio.value, 2);
    EXPECT_DOUBLE_EQ(ratio.low, 1.5);
    EXPECT_DOUBLE_EQ(ratio.high, 24.0 / 9);
    EXPECT_EQ(quotient({1, 1, 1}, {1, 0, 2}), Interval{}) << "a divisor that may be 0";
}

TEST(RatioTest, FollowsTheRatioThatLiesInItsWidenedInterval) {
    const Interval ten{10, 9.5, 10.5};
    EXPECT_EQ(test_ratio(ten, 10, 40).fit, Fit::bandwidth);
    EXPECT_EQ(test_ratio(ten, 40, 10).fit, Fit::flops);
    EXPECT_EQ(test_ratio(ten, 40, 3).fit, Fit::neither);
    EXPECT_EQ(test_ratio(ten, 10, 12).fit, Fit::either);
    EXPECT_EQ(test_ratio(ten, {}, 10).fit, Fit::untested);
    EXPECT_EQ(test_ratio(ten, 10, {}).fit, Fit::bandwidth) << "steps without FLOPs";
    EXPECT_EQ(test_ratio({}, 10, 10).fit, Fit::untested) << "steps without times";
}

TEST(RatioTest, TheFactorOfToleranceIsApplied) {
    const Interval ten{10, 10, 10};
    EXPECT_TRUE(test_ratio(ten, 12.9, {}).fits_bandwidth);
    EXPECT_FALSE(test_ratio(ten, 13.1, {}).fits_bandwidth);
    EXPECT_TRUE(test_ratio(ten, 7.8, {}).fits_bandwidth);
    EXPECT_FALSE(test_ratio(ten, 7.6, {}).fits_bandwidth);
    EXPECT_TRUE(test_ratio(ten, 10 * 1.3, {}).fits_bandwidth) << "the ends belong to it";
    EXPECT_TRUE(test_ratio(ten, 10 / 1.3, {}).fits_bandwidth);
    EXPECT_TRUE(test_ratio({10, 8, 12}, 15, {}).fits_bandwidth) << "a wide interval reaches further";
}

TEST(RatioTest, RatiosOfRoofsThatAreCloseCannotBeToldApartEvenIfOneMisses) {
    const RatioTest close = test_ratio({10, 10, 10}, 12, 15);
    EXPECT_TRUE(close.fits_bandwidth);
    EXPECT_FALSE(close.fits_flops);
    EXPECT_EQ(close.fit, Fit::either);
    EXPECT_EQ(test_ratio({10, 10, 10}, 12, 16).fit, Fit::bandwidth) << "a factor of 1.33 apart";
}

TEST(Change, IsARegressionOnlyWhenTheWholeIntervalIsBeyondTheLimit) {
    EXPECT_EQ(judge_change({1.05, 1.04, 1.06}, 0.03), Change::regression);
    EXPECT_EQ(judge_change({1.05, 1.02, 1.08}, 0.03), Change::cannot_tell) << "wide";
    EXPECT_EQ(judge_change({1.04, 1 + 0.03, 1.05}, 0.03), Change::cannot_tell) << "on the limit is not above it";
    EXPECT_EQ(judge_change({1.02, 1.01, 1.03}, 0.03), Change::within_limit);
    EXPECT_EQ(judge_change({1.02, 0.90, 1.14}, 0.03), Change::cannot_tell);
    EXPECT_EQ(judge_change({1.00, 0.99, 1.01}, 0.03), Change::within_limit);
    EXPECT_EQ(judge_change({0.95, 0.94, 0.96}, 0.03), Change::improvement);
    EXPECT_EQ(judge_change({0.95, 0.90, 1.00}, 0.03), Change::within_limit) << "may be no change at all";
    EXPECT_EQ(judge_change({1.01, 1.005, 1.015}, 0), Change::regression);
}

TEST(Compare, TimesAndRatesOfGroupsAreSumsWithTheirIntervals) {
    const auto runs = two_machines(100, 0.5, 10, 20);
    const Comparison comparison = compare(runs, {});
    const PointComparison& compared = comparison.pairs.at(0).points.at(0);
    EXPECT_NEAR(compared.ratio.value, 17000.0 / 900, 1e-9);
    EXPECT_NEAR(compared.ratio.low, 17 * 0.99 / 0.91, 1e-9);
    EXPECT_NEAR(compared.ratio.high, 17 * 1.01 / 0.89, 1e-9);
    ASSERT_EQ(compared.groups.size(), 2u);
    const GroupComparison &products = compared.groups[0], &copy = compared.groups[1];
    EXPECT_EQ(products.name, "h.*.mlp") << "the largest difference first";
    EXPECT_EQ(copy.name, "wte");
    EXPECT_EQ(products.a.steps, 2u);
    EXPECT_NEAR(products.a.time_us.value, 800, 1e-9);
    EXPECT_NEAR(products.b.time_us.high, 16000 * 1.01, 1e-6);
    EXPECT_NEAR(products.ratio.low, 20 * 0.99 / 1.01, 1e-9);
    EXPECT_NEAR(products.a.tflop_per_s().value, 9, 1e-9);
    EXPECT_NEAR(products.a.tflop_per_s().low, 9 / 1.01, 1e-9);
    EXPECT_NEAR(copy.b.dram_gb_per_s().value, 90, 1e-9);
    EXPECT_EQ(copy.b.dram_origin, Origin::derived) << "no counters";
}

TEST(Compare, CountedBytesReplaceTheCostModels) {
    auto runs = two_machines(100, 0.5, 10, 20);
    for (StepResult& counted : runs[0].result.points[0].steps)
        counted.counters = {{"dram_read_bytes", 150e6}, {"dram_write_bytes", 30e6}};
    const Comparison comparison = compare(runs, {});
    const GroupComparison& copy = comparison.pairs[0].points[0].groups[1];
    EXPECT_NEAR(copy.a.dram_gb_per_s().value, 1800, 1e-9);
    EXPECT_EQ(copy.a.dram_origin, Origin::measured);
    runs[0].result.points[0].counters.metrics = {{"dram_read_bytes", "byte", "", Origin::estimated, "no counters"}};
    const Comparison estimated = compare(runs, {});
    EXPECT_EQ(estimated.pairs[0].points[0].groups[1].a.dram_origin, Origin::estimated);
}

TEST(Compare, KernelTimesKeepTheRelativeIntervalOfTheStepRun) {
    auto runs = two_machines(100, 0.5, 10, 20);
    StepResult& copy = runs[0].result.points[0].steps[0];
    copy.kernels.emplace_back();
    copy.kernels[0].time_us = 80;
    const Comparison comparison = compare(runs, {});
    const Interval us = comparison.pairs[0].points[0].groups[1].a.time_us;
    EXPECT_NEAR(us.value, 80, 1e-9);
    EXPECT_NEAR(us.low, 80 * 0.99, 1e-9);
    EXPECT_NEAR(us.high, 80 * 1.01, 1e-9);
}

TEST(Compare, StepsFollowTheRoofThatBindsThem) {
    const auto runs = two_machines(100, 0.25, 10, 40);
    const Comparison comparison = compare(runs, {});
    const PointComparison& compared = comparison.pairs[0].points[0];
    EXPECT_EQ(compared.groups[0].test.fit, Fit::flops);
    EXPECT_EQ(compared.groups[1].test.fit, Fit::bandwidth);
    EXPECT_NEAR(share(compared.a.fit, Fit::bandwidth), 100.0 / 900, 1e-9);
    EXPECT_NEAR(share(compared.b.fit, Fit::flops), 32000.0 / 33000, 1e-9);
    EXPECT_EQ(compared.groups[0].a.bound(), Bound::compute);
    EXPECT_EQ(compared.groups[1].b.bound(), Bound::bandwidth);
    EXPECT_EQ(compared.a.verdict->bound, Bound::compute);
    EXPECT_EQ(compared.naive.fit, Fit::flops);
    EXPECT_THAT(text_of(compared, "bandwidth?"), HasSubstr("A no (compute-bound, fp32_plain"));
    EXPECT_THAT(text_of(compared, "bandwidth?"), HasSubstr("Scaling agrees: most of the steps' time follows FLOP/s."));
    EXPECT_THAT(text_of(compared, "verdicts"), HasSubstr("share of the time: wte (A 11 %, B 3 %)."));
}

TEST(Compare, AModelOfCopiesIsBandwidthBoundOnBoth) {
    const std::vector<NamedResult> runs{run("fast", 1000, 10, point({copy_and_product(1, 1)[0]}, 0.1, 0.1, 0.1)),
                                        run("slow", 100, 5, point({copy_and_product(10, 1)[0]}, 1, 1, 1))};
    const Comparison comparison = compare(runs, {});
    const PointComparison& compared = comparison.pairs[0].points[0];
    EXPECT_EQ(compared.naive.fit, Fit::bandwidth);
    EXPECT_THAT(text_of(compared, "naive test"), HasSubstr("Ratio of bandwidth fits within a factor of 1.3"));
    EXPECT_THAT(text_of(compared, "bandwidth?"),
                HasSubstr("A yes (bandwidth-bound, DRAM; 100 % of the steps' time is"));
    EXPECT_THAT(text_of(compared, "bandwidth?"), HasSubstr("; B yes (bandwidth-bound, DRAM; 100 % of"));
    EXPECT_THAT(text_of(compared, "bandwidth?"), HasSubstr("Scaling agrees"));
}

/// The trap: bandwidth, FLOP/s and time all differ by about 20, and nothing but the time breakdowns knows that it is
/// FLOPs.
TEST(Compare, WhereBothRatiosFitTheNaiveTestIsNoEvidence) {
    const auto runs = two_machines(50, 0.5, 20, 20);
    const Comparison comparison = compare(runs, {});
    const PointComparison& compared = comparison.pairs[0].points[0];
    EXPECT_TRUE(compared.naive.fits_bandwidth);
    EXPECT_EQ(compared.naive.fit, Fit::either);
    EXPECT_THAT(text_of(compared, "naive test"), HasSubstr("so this test cannot tell bandwidth from FLOP/s"));
    EXPECT_DOUBLE_EQ(share(compared.a.fit, Fit::either), 1);
    EXPECT_THAT(text_of(compared, "by step"), HasSubstr("cannot tell"));
    EXPECT_THAT(text_of(compared, "bandwidth?"), HasSubstr("A no (compute-bound"));
    EXPECT_THAT(text_of(compared, "bandwidth?"), HasSubstr("cannot tell"));
}

TEST(Compare, OfOneMachineNoRatioOfRoofsIsTested) {
    const auto runs = two_machines(1010, 9.9, 1.1, 1.1);
    const Comparison comparison = compare(runs, {});
    const PointComparison& compared = comparison.pairs[0].points[0];
    EXPECT_TRUE(compared.same_roofs);
    EXPECT_DOUBLE_EQ(share(compared.a.fit, Fit::untested), 1);
    EXPECT_THAT(text_of(compared, "naive test"), HasSubstr("the same roofs"));
    EXPECT_EQ(text_of(compared, "by step"), "");
}

TEST(Compare, RoofsWithinFivePercentEitherWayAreOfOneMachine) {
    const auto are_same = [](double of_dram, double of_flops) {
        return compare(two_machines(1000 * of_dram, 10 * of_flops, 1, 1), {}).pairs[0].points[0].same_roofs;
    };
    for (const double one : {1.04, 1 / 1.04}) EXPECT_TRUE(are_same(one, 1) && are_same(1, one)) << one;
    for (const double one : {1.06, 1 / 1.06}) EXPECT_FALSE(are_same(one, 1) || are_same(1, one)) << one;
}

TEST(Compare, RunsHaveLettersAsLongAsThereAreSome) {
    EXPECT_EQ(run_letter(0), "A");
    EXPECT_EQ(run_letter(25), "Z");
    EXPECT_EQ(run_letter(26), "#27");
}

TEST(Compare, AGroupWithoutVerdictsOrATimeHasNoBound) {
    GroupSide side;
    EXPECT_EQ(side.bound(), std::nullopt);
    EXPECT_EQ(side.bound_share(Bound::compute), 0);
    side.time_us = Interval::exactly(0.5);
    side.bound_us[static_cast<std::size_t>(Bound::compute)] = 0.3;
    side.bound_us[static_cast<std::size_t>(Bound::launch)] = 0.2;
    EXPECT_EQ(side.bound(), Bound::compute);
    EXPECT_DOUBLE_EQ(side.bound_share(Bound::compute), 0.6);
}

TEST(Compare, WithoutRoofsItSaysSo) {
    auto runs = two_machines(100, 0.25, 10, 40);
    runs[1].result.ceilings.ceilings.clear();
    const Comparison comparison = compare(runs, {});
    const PointComparison& compared = comparison.pairs[0].points[0];
    EXPECT_EQ(compared.naive.fit, Fit::untested);
    EXPECT_FALSE(compared.b.verdict);
    EXPECT_THAT(text_of(compared, "naive test"), HasSubstr("not tested: B has no roofs"));
    EXPECT_THAT(text_of(compared, "bandwidth?"), HasSubstr("A no (compute-bound"));
    EXPECT_THAT(text_of(compared, "bandwidth?"), HasSubstr("B cannot tell, for lack of roofs."));
    runs[0].result.ceilings.ceilings.clear();
    EXPECT_THAT(text_of(compare(runs, {}).pairs[0].points[0], "bandwidth?"), HasSubstr("Cannot tell: A has no"));
}

TEST(Compare, RowsByOpAndByStep) {
    const auto runs = two_machines(100, 0.25, 10, 40);
    CompareOptions options;
    options.by = CompareBy::op;
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].groups[0].name, "gemm");
    options.by = CompareBy::step;
    const Comparison comparison = compare(runs, options);
    const PointComparison& compared = comparison.pairs[0].points[0];
    ASSERT_EQ(compared.groups.size(), 3u);
    EXPECT_EQ(compared.groups[0].name, "h.0.mlp");
    EXPECT_NEAR(share(compared.a.fit, Fit::bandwidth), 100.0 / 900, 1e-9) << "judged by layer whatever the rows are";
}

TEST(Compare, StepsWithoutACounterpartAreNotSummedWithOthers) {
    auto runs = two_machines(100, 0.25, 10, 40);
    runs[1].result.points[0].steps[0].absorbs = {"somewhere:else"};
    const Comparison comparison = compare(runs, {});
    const PointComparison& compared = comparison.pairs[0].points[0];
    ASSERT_EQ(compared.groups.size(), 1u);
    EXPECT_NEAR(compared.a.unmatched_us, 100, 1e-9);
    EXPECT_NEAR(compared.b.unmatched_us, 1000, 1e-9);
}

TEST(Compare, RegressionsAreOneLineEach) {
    auto runs = two_machines(1000, 10, 1.1, 1.1);
    CompareOptions options;
    options.fail_above = 0.03;
    const Comparison comparison = compare(runs, options);
    EXPECT_THAT(comparison.regressions,
                ElementsAre("gpt2 fp32 batch 2 seq 100: slow takes 10.0 % longer [7.7, 12.3], more than 3 %"));
    Summary& later = runs[1].result.points[0].end_to_end->latency.summary_ms;
    later.n = 1;
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].change, Change::cannot_tell) << "one sample is no evidence";
    later.n = 5;
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].change, Change::cannot_tell);
    later.n = 6;
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].change, Change::regression);
    later.n = 11;
    later.independent = 5;
    later.ci_low = 0.9;
    EXPECT_THAT(write_comparison(compare(runs, options), CompareFormat::text, 10, 200),
                HasSubstr("cannot tell, a run has too few independent samples"));
    later.independent = 11;
    const Comparison wide = compare(runs, options);
    EXPECT_THAT(wide.regressions, IsEmpty());
    EXPECT_EQ(wide.pairs[0].points[0].change, Change::cannot_tell);
    EXPECT_THAT(write_comparison(wide, CompareFormat::text, 10, 100), HasSubstr("cannot tell"));
    EXPECT_THAT(compare(runs, {}).pairs[0].points[0].change, std::nullopt);
}

TEST(Compare, WhatSingleRunsDifferByIsNoRegression) {
    auto runs = two_machines(1000, 10, 1.05, 1.05);
    CompareOptions options;
    options.fail_above = 0.01;
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].change, Change::regression);
    EXPECT_THAT(write_comparison(compare(runs, options), CompareFormat::text, 10, 300), HasSubstr("not known here"));
    // t of 7 degrees 2.365, so two runs differ by up to 2.365 * sqrt(2) * 2 % = 6.7 %.
    runs[1].result.environment.run_to_run = RunToRun{0.02, 8, "kbench run --model mlp", "now"};
    const Comparison unsure = compare(runs, options);
    EXPECT_EQ(unsure.pairs[0].points[0].change, Change::cannot_tell);
    EXPECT_THAT(unsure.regressions, IsEmpty());
    EXPECT_NEAR(unsure.pairs[0].points[0].spread->least_difference(), 2.365 * std::sqrt(2) * 0.02, 1e-4);
    const std::string text = write_comparison(unsure, CompareFormat::text, 10, 300);
    EXPECT_THAT(text, HasSubstr("cannot tell below 6.7 % (8 runs of `kbench run --model mlp` on slow's machine"));
    EXPECT_THAT(text, HasSubstr("differ by up to 6.7 % with nothing changed"));
    runs[1].result.environment.run_to_run->deviation = 0.002;
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].change, Change::regression);
    runs[0].result.environment.run_to_run = RunToRun{0.02, 8, "", ""};
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].change, Change::cannot_tell) << "the larger of the two";
    runs[0].result.environment.run_to_run->runs = fewest_repeats;
    EXPECT_TRUE(run_spread(runs, runs[0], runs[0], runs[0].result.points[0]));
    runs[0].result.environment.run_to_run->runs = fewest_repeats - 1;
    EXPECT_FALSE(run_spread(runs, runs[0], runs[0], runs[0].result.points[0])) << "too few to tell";
    runs[0].result.environment.run_to_run->runs = 8;
    std::swap(runs[0].result.environment.run_to_run, runs[1].result.environment.run_to_run);
    EXPECT_EQ(compare(runs, options).pairs[0].points[0].change, Change::cannot_tell) << "whichever has it";
}

TEST(Compare, RepeatsTellWhatRunsDifferBy) {
    auto runs = two_machines(1000, 10, 1.05, 1.05);
    runs[0].result.environment.command_line = "kbench run --model gpt2 --out a";
    runs[1].result.environment.command_line = "kbench run --model gpt2 --provider gemm=native --out b";
    EXPECT_FALSE(compare(runs, {}).pairs[0].points[0].spread);
    for (NamedResult& run : runs) run.result.environment.git_revision = "abc";
    runs[0].result.environment.started_at = "at 1";
    for (const double slower : {1.01, 0.99, 1.02}) {
        runs.push_back(runs[0]);
        runs.back().result.environment.started_at = fmt::format("at {}", slower);
        runs.back().result.environment.command_line = fmt::format("kbench run --model gpt2 --out a{}", slower);
        runs.back().result.points[0].end_to_end->latency.summary_ms.median *= slower;
    }
    const std::optional<RunSpread> spread = compare(runs, {}).pairs[0].points[0].spread;
    ASSERT_TRUE(spread);
    EXPECT_EQ(spread->runs, 4);
    EXPECT_THAT(spread->basis, HasSubstr("4 of these runs are repeats of fast"));
    EXPECT_NEAR(spread->deviation, 0.0129, 1e-4);
    auto again = runs;
    again[0].result.environment.run_to_run = RunToRun{0.5, 8, "another day", ""};
    EXPECT_EQ(compare(again, {}).pairs[0].points[0].spread->basis, spread->basis) << "these runs know better";
    again = runs;
    again.back().result.environment.started_at = "at 1";
    EXPECT_FALSE(compare(again, {}).pairs[0].points[0].spread) << "one run given twice";
    again = runs;
    again.back().result.environment.libraries["cublaslt"] = "another";
    EXPECT_FALSE(compare(again, {}).pairs[0].points[0].spread) << "three are too few";
    again = runs;
    again.back().result.points[0].set("batch", 3);
    EXPECT_FALSE(run_spread(again, again[0], again[1], again[0].result.points[0])) << "one did not measure the point";
    for (NamedResult& run : runs) run.result.environment.git_revision = "abc-dirty";
    EXPECT_FALSE(compare(runs, {}).pairs[0].points[0].spread) << "uncommitted changes may be any";
}

TEST(Compare, AnotherCardOfTheSameKindIsNamed) {
    auto runs = two_machines(1000, 10, 1.01, 1.01);
    for (NamedResult& run : runs) {
        GpuInfo& gpu = run.result.environment.gpu.emplace();
        gpu.name = "G";
        gpu.uuid = "1";
    }
    EXPECT_THAT(write_comparison(compare(runs, {}), CompareFormat::text, 10, 300), Not(HasSubstr("two cards")));
    runs[1].result.environment.gpu->uuid = "2";
    EXPECT_THAT(write_comparison(compare(runs, {}), CompareFormat::text, 10, 300), HasSubstr("two cards of one kind"));
    runs[1].result.environment.gpu->name = "H";
    EXPECT_THAT(write_comparison(compare(runs, {}), CompareFormat::text, 10, 300), Not(HasSubstr("two cards")));
}

TEST(Compare, PricesGiveTheCostOfAMillion) {
    auto runs = two_machines(100, 0.25, 10, 40);
    runs[0].result.points[0].end_to_end->energy_per_sequence_j = Quantity::derived(2.5);
    CompareOptions options;
    options.prices = {{"fast", 36}, {"slow", 0.36}};
    const Comparison comparison = compare(runs, options);
    ASSERT_EQ(comparison.values.size(), 1u);
    const std::vector<ValueRow>& rows = comparison.values[0].rows;
    // 33 ms for 2 sequences at 0.0001 dollars a second; 0.9 ms at 0.01.
    EXPECT_EQ(rows[0].run, 1u) << "cheapest first";
    EXPECT_NEAR(rows[0].dollars_per_million_sequences->value, 1.65, 1e-9);
    EXPECT_NEAR(rows[1].dollars_per_million_sequences->value, 4.5, 1e-9);
    EXPECT_NEAR(rows[1].dollars_per_million_sequences->low, 4.45, 1e-9);
    EXPECT_NEAR(rows[1].dollars_per_million_tokens->value, 0.045, 1e-9);
    EXPECT_NEAR(rows[1].sequences_per_s.value(), 2 / 0.9e-3, 1e-6);
    EXPECT_NEAR(*rows[1].latency_bandwidth_gb, 0.9, 1e-9);
    EXPECT_EQ(value_of(rows[1].energy_per_sequence_j), 2.5);
    EXPECT_EQ(compare(runs, {}).values[0].rows[0].run, 0u) << "without prices fastest first";
    options.prices = {{"slow", 100}};
    EXPECT_EQ(compare(runs, options).values[0].rows[0].run, 1u) << "what has no price comes last";
}

TEST(Compare, WithoutSequencesOrATimeThereIsNoRate) {
    auto runs = two_machines(100, 0.25, 10, 40);
    CompareOptions options;
    options.prices = {{"fast", 36}};
    const auto first = [&] {
        const Comparison comparison = compare(runs, options);
        return *std::ranges::find(comparison.values.at(0).rows, 0u, &ValueRow::run);
    };
    EXPECT_TRUE(first().sequences_per_s && first().dollars_per_million_tokens);
    Summary& ms = runs[0].result.points[0].end_to_end->latency.summary_ms;
    const double median = ms.median;
    ms.median = 0;
    EXPECT_EQ(first().sequences_per_s, std::nullopt);
    ms.median = median;
    for (NamedResult& run : runs) run.result.points[0].axes.erase("seq");
    EXPECT_TRUE(first().dollars_per_million_sequences);
    EXPECT_FALSE(first().dollars_per_million_tokens);
    for (NamedResult& run : runs) run.result.points[0].axes.erase("batch");
    EXPECT_FALSE(first().sequences_per_s || first().dollars_per_million_sequences);
}

TEST(Compare, APriceOfNobodyIsRefused) {
    const auto runs = two_machines(100, 0.25, 10, 40);
    CompareOptions options;
    options.prices = {{"fsat", 1}};
    EXPECT_EQ(refusal_of([&] { compare(runs, options); }), "--price: no result is called 'fsat'; they are fast, slow");
}

TEST(Compare, AllRunsAreSetAgainstTheFirst) {
    auto runs = two_machines(100, 0.25, 10, 40);
    runs.push_back(two_machines(500, 5, 2, 2)[1]);
    runs[2].name = "middle";
    const Comparison comparison = compare(runs, {});
    ASSERT_EQ(comparison.pairs.size(), 2u);
    EXPECT_NEAR(comparison.pairs[1].points[0].ratio.value, 2, 1e-9);
    EXPECT_THAT(text_of(comparison.pairs[1].points[0], "naive test"), HasSubstr("C takes 2.00 times"));
    EXPECT_EQ(comparison.values[0].rows.size(), 3u);
    EXPECT_THAT(write_comparison(comparison, CompareFormat::text, 10, 100), HasSubstr("C (middle) against A"));
}

TEST(CompareWriters, GoldenFilesAtAHundredColumns) {
    auto runs = two_machines(50, 0.5, 20, 20);
    CompareOptions options;
    options.fail_above = 0.03;
    options.prices = {{"fast", 36}, {"slow", 0.36}};
    const Comparison comparison = compare(runs, options);
    expect_golden("compare.txt", write_comparison(comparison, CompareFormat::text, 10, 100));
    expect_golden("compare.md", write_comparison(comparison, CompareFormat::markdown, 10, 100));
    expect_golden("compare.json", write_comparison_json(comparison, {}));
}

NamedResult recorded(const std::string& name) {
    const std::string path = std::string(KBENCH_SOURCE_DIR) + "/results/h200-2026-11-21/" + name + "/result.json.gz";
    return {name, path, parse_result(read_file(path), path)};
}

TEST(CompareWriters, TheAnswerComesFirst) {
    const std::vector<NamedResult> runs = two_machines(50, 0.5, 20, 20);
    Comparison comparison = compare(runs, {});
    const auto answer = [&](const Interval& ratio) {
        comparison.pairs[0].points[0].ratio = ratio;
        const std::string text = write_comparison(comparison, CompareFormat::text, 10, 100);
        return text.substr(0, text.find('\n'));
    };
    EXPECT_EQ(answer({1.2, 1.1, 1.3}), "B takes 20.0 % longer than A [+10.0 %, +30.0 %].");
    EXPECT_EQ(answer({0.8, 0.7, 0.9}), "B takes 20.0 % less time than A [-30.0 %, -10.0 %].");
    EXPECT_EQ(answer({1.2, 0.9, 1.3}),
              "B takes 20.0 % longer than A [-10.0 %, +30.0 %]. Which of them is faster is unknown.");
    EXPECT_EQ(answer({4, 2, 5}), "B takes 4.00 times as long as A [2.00, 5.00].");
    EXPECT_EQ(answer({0.25, 0.2, 0.5}), "A takes 4.00 times as long as B [2.00, 5.00].");
    EXPECT_EQ(answer({0, 0, 0}), "Cannot tell: a run has no time.");
    comparison.pairs[0].points[0].spread = RunSpread{0.1, 8, ""};
    EXPECT_THAT(answer({1.02, 1.01, 1.03}), HasSubstr("Single runs differ by as much with nothing changed."));
    const std::vector<NamedResult> several{recorded("gpu"), recorded("cpu")};
    EXPECT_THAT(write_comparison(compare(several, {}), CompareFormat::text, 10, 100),
                testing::StartsWith("B takes 17.2 to 171 times as long as A: slower in 4 of 4 points, faster in 0."));
}

TEST(CompareWriters, NamesAreTextInMarkdownWhateverTheyHold) {
    auto runs = two_machines(100, 0.25, 10, 40);
    runs[1].name = "<script>alert(1)</script>|[x](http://e)\n# b";
    for (NamedResult& each : runs) each.result.points[0].steps[0].layer = "w|te`<b>";
    const std::string text = write_comparison(compare(runs, {}), CompareFormat::markdown, 10, 100);
    EXPECT_THAT(text, Not(HasSubstr("<")));
    EXPECT_THAT(text, Not(testing::ContainsRegex("[^\\\\]\\]\\(")));
    EXPECT_THAT(text, Not(HasSubstr("\n# b")));
    EXPECT_THAT(text, HasSubstr("w&#124;te\\`&#60;b>"));
}

TEST(CompareWriters, TopLimitsTheRowsAndSaysHowManyAreLeft) {
    const auto runs = two_machines(100, 0.25, 10, 40);
    const Comparison comparison = compare(runs, {});
    const std::string text = write_comparison(comparison, CompareFormat::text, 1, 100);
    EXPECT_THAT(text, HasSubstr("rows left out: 1 (--top)"));
    EXPECT_THAT(text, Not(HasSubstr("\n  wte")));
    const auto json = nlohmann::json::parse(write_comparison_json(comparison, 1));
    EXPECT_EQ(json["pairs"][0]["points"][0]["groups"].size(), 1u);
    EXPECT_EQ(json["pairs"][0]["points"][0]["groups_left_out"], 1);
}

TEST(CompareRecorded, AGpuAndACpuPlanHaveAllTheirStepsInCommon) {
    const std::vector<NamedResult> runs{recorded("gpu"), recorded("cpu")};
    const Comparison comparison = compare(runs, {});
    const PairComparison& pair = comparison.pairs[0];
    EXPECT_EQ(pair.points.size(), 4u) << "fp16, bf16, fp32, fp64 at batch 1";
    EXPECT_EQ(pair.left_out.size(), 6u);
    for (const PointComparison& compared : pair.points) {
        EXPECT_EQ(compared.a.unmatched_us, 0) << compared.title;
        EXPECT_EQ(compared.b.unmatched_us, 0) << compared.title;
        double a_us = 0;
        for (const GroupComparison& group : compared.groups) {
            a_us += group.a.time_us.value;
            EXPECT_LE(group.ratio.low, group.ratio.value) << group.name;
            EXPECT_GE(group.ratio.high, group.ratio.value) << group.name;
            EXPECT_NEAR(group.a.flops / group.b.flops, 1, 1e-9) << group.name << ": the same ops, the same FLOPs";
        }
        EXPECT_NEAR(a_us, compared.a.all.time_us.value, 1e-6 * a_us);
    }
    const PointComparison& fp32 = pair.points[2];
    EXPECT_EQ(fp32.title, "gpt2-large fp32 batch 1 seq 1024");
    EXPECT_NEAR(fp32.ratio.value, 677.66 / 39.347, 0.01);
}

TEST(CompareRecorded, NamesOfRowsAreWholeOnAnyTerminal) {
    const std::vector<NamedResult> runs{recorded("fp16"), recorded("fp16-repeat")};
    const Comparison comparison = compare(runs, {});
    for (const std::size_t width : {60, 80, 100}) {
        const std::string text = write_comparison(comparison, CompareFormat::text, 10, width);
        for (const GroupComparison& group : comparison.pairs[0].points[0].groups)
            EXPECT_THAT(text, HasSubstr("\n  " + group.name + "  ")) << width;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
            EXPECT_TRUE(!line.starts_with("  h.*") || line.size() <= width) << line;
    }
}

TEST(CompareRecorded, TextKeepsWithinAHundredColumns) {
    const std::vector<NamedResult> runs{recorded("gpu"), recorded("cpu")};
    CompareOptions options;
    options.prices = {{"gpu", 3.5}, {"cpu", 0.8}};
    std::istringstream lines(write_comparison(compare(runs, options), CompareFormat::text, 10, 100));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace kbench
