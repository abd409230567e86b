// The median's interval must hold what it promises; the known ranks are from tables of the sign test.
#include "kbench/statistics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kbench/error.h"

namespace kbench {
namespace {

/// n, n - 1, ... 1: unsorted, and every sample's value is its rank.
std::vector<double> ranks(std::size_t n) {
    std::vector<double> values(n);
    std::iota(values.rbegin(), values.rend(), 1.0);
    return values;
}

TEST(Statistics, PercentilesInterpolateBetweenOrderStatistics) {
    const Summary summary = summarise(std::vector<double>{40, 10, 30, 20});
    EXPECT_EQ(summary.n, 4u);
    EXPECT_DOUBLE_EQ(summary.min, 10);
    EXPECT_DOUBLE_EQ(summary.p25, 17.5);
    EXPECT_DOUBLE_EQ(summary.median, 25);
    EXPECT_DOUBLE_EQ(summary.mean, 25);
    EXPECT_DOUBLE_EQ(summary.p75, 32.5);
    EXPECT_DOUBLE_EQ(summary.p90, 37);
    EXPECT_DOUBLE_EQ(summary.p95, 38.5);
    EXPECT_DOUBLE_EQ(summary.p99, 39.7);
    EXPECT_DOUBLE_EQ(summary.max, 40);
}

struct KnownInterval {
    std::size_t n;
    double low, high;
};

class MedianInterval : public testing::TestWithParam<KnownInterval> {};

TEST_P(MedianInterval, HasTheRanksOfTheSignTest) {
    const auto [n, low, high] = GetParam();
    const Summary summary = summarise(ranks(n));
    EXPECT_EQ(summary.ci_low, low);
    EXPECT_EQ(summary.ci_high, high);
}

// 1 - 2 P(X < low): n = 6 96.9 %, 8 99.2 %, 9 96.1 %, 10 97.9 %, 25 95.7 %, 100 96.5 %, 1000 95.4 %.
INSTANTIATE_TEST_SUITE_P(Known, MedianInterval,
                         testing::Values(KnownInterval{1, 1, 1}, KnownInterval{5, 1, 5}, KnownInterval{6, 1, 6},
                                         KnownInterval{8, 1, 8}, KnownInterval{9, 2, 8}, KnownInterval{10, 2, 9},
                                         KnownInterval{25, 8, 18}, KnownInterval{100, 40, 61},
                                         KnownInterval{1000, 469, 532}),
                         [](const auto& instance) { return fmt::format("n{}", instance.param.n); });

/// 1 - 2 P(Binomial(n, 1/2) < rank), by logarithms so that any n works.
double coverage(std::size_t n, std::size_t rank) {
    const double count = static_cast<double>(n);
    double below = 0;
    for (std::size_t i = 0; i < rank; ++i) {
        const double k = static_cast<double>(i);
        below +=
            std::exp(std::lgamma(count + 1) - std::lgamma(k + 1) - std::lgamma(count - k + 1) - count * std::log(2));
    }
    return 1 - 2 * below;
}

TEST(Statistics, IntervalIsTheNarrowestThatReachesTheConfidence) {
    for (std::size_t n = 6; n <= 1000; ++n) {
        const auto rank = static_cast<std::size_t>(summarise(ranks(n)).ci_low);
        ASSERT_GE(coverage(n, rank), 0.95) << "n " << n;
        ASSERT_LT(coverage(n, rank + 1), 0.95) << "n " << n;
    }
}

TEST(Statistics, NormalApproximationGoesOnWhereTheExactRanksEnd) {
    for (const std::size_t n : {1001, 1002, 1500, 3000, 10000}) {
        const auto rank = static_cast<std::size_t>(summarise(ranks(n)).ci_low);
        EXPECT_GE(coverage(n, rank), 0.9495) << "n " << n;
        EXPECT_LT(coverage(n, rank + 2), 0.95) << "n " << n;
    }
}

TEST(Statistics, IntervalCoversTheTrueMedianOfSkewedSamples) {
    std::mt19937_64 random(20250601);
    std::lognormal_distribution<double> times(0, 1);  // median 1
    constexpr int trials = 2000;
    for (const std::size_t n : {6, 15, 40, 120}) {
        int covered = 0;
        for (int trial = 0; trial < trials; ++trial) {
            std::vector<double> samples(n);
            for (double& sample : samples) sample = times(random);
            const Summary summary = summarise(samples);
            covered += summary.ci_low <= 1 && 1 <= summary.ci_high;
        }
        EXPECT_GE(covered, trials * 93 / 100) << "n " << n;
        EXPECT_LE(covered, trials * 99 / 100) << "n " << n << ": wider than it need be";
    }
}

TEST(Statistics, RelativeIntervalIsTheLargerSide) {
    const Summary summary = summarise(std::vector<double>{98, 99, 100, 100, 100, 104});
    EXPECT_DOUBLE_EQ(summary.relative_ci(), 0.04);
}

TEST(Statistics, RelativeIntervalIsInfiniteBelowSixSamples) {
    EXPECT_EQ(summarise(std::vector<double>{1, 1, 1, 1, 1}).relative_ci(), std::numeric_limits<double>::infinity());
    EXPECT_FALSE(summarise(std::vector<double>{1, 1, 1, 1, 1}).has_interval());
    EXPECT_EQ(summarise(std::vector<double>{1, 1, 1, 1, 1, 1}).relative_ci(), 0);
    EXPECT_TRUE(summarise(std::vector<double>{1, 1, 1, 1, 1, 1}).has_interval());
}

TEST(Statistics, RefusesNoSamples) { EXPECT_THROW(summarise({}), MeasurementError); }

TEST(Statistics, NamesTheSampleThatIsNotFinite) {
    try {
        summarise(std::vector<double>{1, 2, std::nan("")});
        FAIL() << "not refused";
    } catch (const MeasurementError& error) {
        EXPECT_STREQ(error.what(), "sample 3 of 3 is nan; samples must be finite");
    }
}

}  // namespace
}  // namespace kbench
