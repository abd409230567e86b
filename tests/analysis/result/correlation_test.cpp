// Correlation of neighbouring samples: textbook series, and what it takes from a median.
#include "analysis/result/correlation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace kbench {
namespace {

/// What an estimate is for a correlation of ranks among n samples.
double estimate(double of_ranks, double n) {
    const double seen = 2 * std::sin(std::acos(-1.0) / 6 * of_ranks);
    return seen + (1 + 3 * seen) / n;
}

TEST(Correlation, OfNeighboursIsThatOfTheirRanks) {
    // Ranks less their mean are -1.5, -0.5, 0.5 and 1.5: products of neighbours add up to 1.25, squares to 5.
    EXPECT_DOUBLE_EQ(correlation_of_neighbours(std::vector<double>{1, 2, 3, 1e9}).value, estimate(0.25, 4));
    EXPECT_DOUBLE_EQ(correlation_of_neighbours(std::vector<double>{1, 4, 2, 3}).value, estimate(-0.65, 4));
    EXPECT_EQ(correlation_of_neighbours(std::vector<double>(50, 3.0)).high, 0) << "nothing differs";
    EXPECT_EQ(correlation_of_neighbours(std::vector<double>{2}).high, 0);
}

TEST(Correlation, TiesShareARank) {
    EXPECT_DOUBLE_EQ(correlation_of_neighbours(std::vector<double>{1, 1, 2, 2}).value, estimate(0.25, 4));
}

TEST(Correlation, EstimatesHoldOnAverageAndTheirUpperEndHoldsNineteenTimesInTwenty) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (const double rho : {0.0, 0.5, 0.9}) {
        constexpr int trials = 1000, n = 200;
        double mean = 0;
        int below = 0;
        for (int trial = 0; trial < trials; ++trial) {
            std::vector<double> samples(n);
            double state = normal(random);
            for (double& sample : samples) {
                sample = std::exp(state);
                state = rho * state + std::sqrt(1 - rho * rho) * normal(random);
            }
            const NeighbourCorrelation found = correlation_of_neighbours(samples);
            mean += found.value / trials;
            below += rho <= found.high;
        }
        EXPECT_NEAR(mean, rho, 0.03) << rho;
        EXPECT_GE(below, trials * 90 / 100) << rho;
        EXPECT_LE(below, trials * 98 / 100) << rho;
    }
}

TEST(Correlation, OfALongSeriesInflatesTheVarianceOfItsMedianAsSimulated) {
    EXPECT_EQ(median_inflation(0), 1);
    EXPECT_EQ(median_inflation(-0.5), 1);
    EXPECT_EQ(median_inflation(1), median_inflation(0.995)) << "and it ends";
    std::mt19937_64 random(2);
    std::normal_distribution<double> normal;
    for (const double rho : {0.5, 0.9}) {
        constexpr int trials = 1000, n = 2000;
        double squares = 0;
        for (int trial = 0; trial < trials; ++trial) {
            double state = normal(random), below = 0;
            for (int i = 0; i < n; ++i) {
                below += state < 0 ? 1.0 / n : 0;
                state = rho * state + std::sqrt(1 - rho * rho) * normal(random);
            }
            squares += (below - 0.5) * (below - 0.5) / trials;
        }
        EXPECT_NEAR(squares / (0.25 / n), median_inflation(rho), 0.12 * median_inflation(rho)) << rho;
    }
}

}  // namespace
}  // namespace kbench
