// The median's interval must hold what it promises, also where samples resemble their neighbours.
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

/// Normal samples of which each resembles the one before it by `rho`.
std::vector<double> series(std::size_t n, double rho, std::mt19937_64& random, double center = 100) {
    std::normal_distribution<double> normal;
    std::vector<double> samples(n);
    double state = normal(random);
    for (double& sample : samples) {
        sample = center + state;
        state = rho * state + std::sqrt(1 - rho * rho) * normal(random);
    }
    return samples;
}

TEST(Statistics, IntervalCoversTheTrueMedianOfSkewedSamples) {
    std::mt19937_64 random(20250601);
    std::lognormal_distribution<double> times(0, 1);  // median 1
    constexpr int trials = 2000;
    for (const std::size_t n : {20, 40, 120, 1000}) {
        int covered = 0, shown = 0;
        for (int trial = 0; trial < trials; ++trial) {
            std::vector<double> samples(n);
            for (double& sample : samples) sample = times(random);
            const Summary summary = summarise(samples);
            shown += summary.has_interval();
            covered += summary.has_interval() && summary.ci_low <= 1 && 1 <= summary.ci_high;
        }
        EXPECT_GE(shown, trials * (n < 100 ? 80 : 99) / 100) << "n " << n;
        EXPECT_GE(covered, shown * 93 / 100) << "n " << n;
        EXPECT_LE(covered, shown * 99 / 100) << "n " << n << ": wider than it need be";
    }
}

TEST(Statistics, IntervalCoversTheTrueMedianOfSamplesThatResembleTheirNeighbours) {
    std::mt19937_64 random(20261122);
    constexpr int trials = 1000;
    for (const double rho : {0.5, 0.9, 0.98}) {
        const double independent = 20, n = independent * (1 + rho) / (1 - rho);
        int covered = 0, shown = 0;
        for (int trial = 0; trial < trials; ++trial) {
            const Summary summary = summarise(series(static_cast<std::size_t>(n), rho, random));
            shown += summary.has_interval();
            covered += summary.has_interval() && summary.ci_low <= 100 && 100 <= summary.ci_high;
        }
        EXPECT_GE(shown, trials * 90 / 100) << "rho " << rho;
        EXPECT_GE(covered, shown * 91 / 100) << "rho " << rho;
        EXPECT_LE(covered, shown * 99 / 100) << "rho " << rho;
    }
}

TEST(Statistics, IndependentSamplesAreCounted) {
    std::mt19937_64 random(1);
    // For normal samples with correlations rho^k, those of being below the median are 2 / pi asin(rho^k).
    for (const double rho : {0.0, 0.5, 0.9, 0.98}) {
        double sum = 0.5;
        for (double power = rho; power > 1e-6; power *= rho) sum += 2 / std::acos(-1.0) * std::asin(power);
        double found = 0;
        for (int trial = 0; trial < 20; ++trial) found += summarise(series(10000, rho, random)).independent / 20;
        EXPECT_NEAR(found, 10000 / (2 * sum), 0.25 * 10000 / (2 * sum)) << "rho " << rho;
    }
    EXPECT_EQ(summarise(std::vector<double>(50, 3.0)).independent, 50) << "never more than there are";
}

TEST(Statistics, FewIndependentSamplesHaveNoInterval) {
    std::vector<double> drift(500);
    std::iota(drift.begin(), drift.end(), 1000.0);
    const Summary summary = summarise(drift);
    EXPECT_FALSE(summary.has_interval()) << "500 samples on one slope are few";
    EXPECT_LT(summary.independent, 10);
    EXPECT_EQ(summary.relative_ci(), std::numeric_limits<double>::infinity());
    EXPECT_EQ(summary.ci_low, summary.min);
    EXPECT_EQ(summary.ci_high, summary.max);
    EXPECT_FALSE(summarise(std::vector<double>(9, 1.0)).has_interval());
    EXPECT_TRUE(summarise(std::vector<double>(10, 1.0)).has_interval());
    EXPECT_EQ(summarise(std::vector<double>(10, 1.0)).relative_ci(), 0);
    EXPECT_FALSE(Summary{.n = 300}.has_interval()) << "of results that did not record how many were independent";
}

TEST(Statistics, RelativeIntervalIsTheLargerSide) {
    const Summary summary{.n = 20, .median = 100, .independent = 20, .ci_low = 99, .ci_high = 104};
    EXPECT_DOUBLE_EQ(summary.relative_ci(), 0.04);
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
