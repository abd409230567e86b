// The interval of a scope's mean time: textbook values, and how often it holds the truth.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "profile/embedded/interval.h"

namespace kbench::embedded {
namespace {

TEST(MeanInterval, HasTextbookValues) {
    EXPECT_EQ(mean_of({}).n, 0u);
    const std::vector<double> one{3}, two{1, 3}, ramp{1, 2, 3, 4, 5}, steady(100, 2.5);
    EXPECT_EQ(mean_of(one).half_width, std::nullopt);
    EXPECT_DOUBLE_EQ(mean_of(one).value, 3);
    EXPECT_NEAR(*mean_of(two).half_width, 12.7062 * 1, 1e-9) << "no correlation: they lie on either side";
    // Standard error 0.70711, t of 4 degrees 2.7764, and neighbours correlate by 0.4.
    EXPECT_NEAR(*mean_of(ramp).half_width, 2.7764 * 0.70711 * 1.52753, 1e-3);
    EXPECT_DOUBLE_EQ(*mean_of(steady).half_width, 0);
}

/// Share of series whose interval holds 0, their mean; `correlation` is that of neighbours.
double coverage(int samples, double correlation) {
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    constexpr int series = 4000;
    int held = 0;
    for (int s = 0; s < series; ++s) {
        std::vector<double> values;
        double value = normal(random) / std::sqrt(1 - correlation * correlation);
        for (int i = 0; i < samples; ++i) {
            values.push_back(value);
            value = correlation * value + normal(random);
        }
        const Mean mean = mean_of(values);
        held += std::abs(mean.value) <= *mean.half_width ? 1 : 0;
    }
    return held / static_cast<double>(series);
}

TEST(MeanInterval, HoldsTheTruthAsOftenAsItSays) {
    for (const int samples : {3, 5, 6, 10, 50}) {
        EXPECT_GT(coverage(samples, 0), 0.94) << samples;
        EXPECT_LT(coverage(samples, 0), 0.985) << samples;
    }
    EXPECT_GT(coverage(400, 0.8), 0.93) << "samples of a clock that is regulated resemble their neighbours";
}

}  // namespace
}  // namespace kbench::embedded
