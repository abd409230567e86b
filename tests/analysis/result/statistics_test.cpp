// The median's interval must hold what it promises, also where samples resemble their neighbours.
#include "kbench/statistics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/result/correlation.h"
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
        EXPECT_GE(shown, trials * (n < 40 ? 55 : n < 100 ? 85 : 99) / 100) << "n " << n;
        EXPECT_GE(covered, shown * 93 / 100) << "n " << n;
        if (n >= 100) {
            EXPECT_LE(covered, shown * 99 / 100) << "n " << n << ": wider than it need be";
        }
    }
}

TEST(Statistics, IntervalCoversTheTrueMedianOfSamplesThatResembleTheirNeighbours) {
    std::mt19937_64 random(20261122);
    constexpr int trials = 1000;
    for (const double rho : {0.5, 0.9, 0.98}) {
        const double independent = 40, n = independent * (1 + rho) / (1 - rho);
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

/// Series that end wherever a budget does. Those that look less correlated than they are pass a screen more easily, so
/// the intervals that are shown are held to their promise, and not all that could be computed.
TEST(Statistics, IntervalsThatAreShownCoverTheTrueMedianHoweverFewSamplesThereAre) {
    constexpr int trials = 500;
    std::mt19937_64 random(20261126);
    for (const double rho : {0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97}) {
        int of_all = 0, shown_of_all = 0;
        for (const std::size_t n : {12, 16, 20, 30, 50, 80, 120, 200, 400, 800, 1600, 3200}) {
            int covered = 0, shown = 0;
            for (int trial = 0; trial < trials; ++trial) {
                const Summary summary = summarise(series(n, rho, random));
                shown += summary.has_interval();
                covered += summary.has_interval() && summary.ci_low <= 100 && 100 <= summary.ci_high;
            }
            EXPECT_LE(shown - covered, trials * 5 / 100) << "rho " << rho << ", n " << n;
            if (shown >= trials / 4) {
                EXPECT_GE(covered, shown * 90 / 100) << "rho " << rho << ", n " << n;
            }
            if (rho == 0 && n >= 50) {
                EXPECT_GE(shown, trials * 90 / 100) << "n " << n;
            }
            of_all += covered;
            shown_of_all += shown;
        }
        const double coverage = static_cast<double>(of_all) / shown_of_all;
        RecordProperty(fmt::format("coverage_at_rho_{}", rho), fmt::format("{:.3f}", coverage));
        EXPECT_GE(coverage, 0.9) << "rho " << rho;
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
    EXPECT_LT(summary.independent, fewest_independent);
    EXPECT_EQ(summary.relative_ci(), std::numeric_limits<double>::infinity());
    EXPECT_EQ(summary.ci_low, summary.min);
    EXPECT_EQ(summary.ci_high, summary.max);
    EXPECT_FALSE(summarise(std::vector<double>(9, 1.0)).has_interval());
    EXPECT_TRUE(summarise(std::vector<double>(10, 1.0)).has_interval());
    EXPECT_EQ(summarise(std::vector<double>(10, 1.0)).relative_ci(), 0);
    EXPECT_FALSE(Summary{.n = 300}.has_interval()) << "of results that did not record how many were independent";
}

/// Blocks of four samples that are alike, in an order in which blocks are unlike: 16 blocks tell as much as 16 samples,
/// and their samples correlate.
TEST(Statistics, CorrelatedSamplesNeedMoreThatAreIndependent) {
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    for (const auto& [blocks, shown] : {std::pair{16, false}, {60, true}}) {
        std::vector<double> alike, apart;
        for (int i = 0; i < blocks; ++i) {
            apart.push_back(normal(random));
            for (int k = 0; k < 4; ++k) alike.push_back(apart.back() + 0.01 * normal(random));
        }
        EXPECT_EQ(summarise(alike).has_interval(), shown) << blocks;
        if (shown) {
            EXPECT_GE(summarise(alike).independent, fewest_independent_of_correlated);
        } else {
            EXPECT_LT(summarise(alike).independent, fewest_independent);
        }
    }
}

TEST(Statistics, TheManualSaysHowManyAnIntervalNeeds) {
    std::ifstream file(std::string(KBENCH_SOURCE_DIR) + "/docs/method.md");
    const std::string manual{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(manual.find(fmt::format("An interval needs {} *independent* samples, and {} where neighbours",
                                      fewest_independent, fewest_independent_of_correlated)),
              std::string::npos);
    EXPECT_NE(manual.find(fmt::format("more than {}", correlated_from)), std::string::npos);
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
