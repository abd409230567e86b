// The Hodges-Lehmann estimate and its interval.
#include "analysis/result/signed_rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace kbench {
namespace {

std::vector<double> walsh_averages(const std::vector<double>& values) {
    std::vector<double> averages;
    for (std::size_t i = 0; i < values.size(); ++i)
        for (std::size_t j = i; j < values.size(); ++j) averages.push_back((values[i] + values[j]) / 2);
    std::ranges::sort(averages);
    return averages;
}

TEST(HodgesLehmann, HasTheLimitsOfTextbooks) {
    struct Known {
        int count;
        std::size_t critical;  ///< the largest sum of ranks that is significant at 5 %, two-sided
    };
    for (const auto& [count, critical] : {Known{6, 0}, {7, 2}, {8, 3}, {10, 8}, {15, 25}, {20, 52}, {30, 137}}) {
        std::vector<double> values;
        for (int i = 0; i < count; ++i) values.push_back(std::pow(1.3, i));
        const std::vector<double> means = walsh_averages(values);
        const std::optional<Interval> centre = hodges_lehmann(values, 0.05);
        ASSERT_TRUE(centre) << count;
        EXPECT_NEAR(centre->low, means[critical], 1e-12 * means.back()) << count;
        EXPECT_NEAR(centre->high, means[means.size() - 1 - critical], 1e-12 * means.back()) << count;
        const std::size_t middle = means.size() / 2;
        EXPECT_NEAR(centre->value, means.size() % 2 ? means[middle] : (means[middle - 1] + means[middle]) / 2,
                    1e-12 * means.back())
            << count;
    }
}

TEST(HodgesLehmann, TooFewHaveNone) {
    const std::vector<double> values{1, 2, 3, 4, 5, 6, 7};
    EXPECT_FALSE(hodges_lehmann({}, 0.025));
    EXPECT_FALSE(hodges_lehmann(std::span(values).first(6), 0.025));
    ASSERT_TRUE(hodges_lehmann(values, 0.025));
    EXPECT_EQ(hodges_lehmann(values, 0.025), (Interval{4, 1, 7}));
    EXPECT_EQ(hodges_lehmann(std::vector<double>(9, 3.0), 0.05), Interval::exactly(3));
}

/// One in ten of them a hundred times as far out: the interval holds 0 as often as it says, and is no wider for it.
TEST(HodgesLehmann, HoldsTheCentreOfValuesWithLongTails) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (const std::size_t count : {9u, 40u, 200u}) {
        constexpr int trials = 2000;
        int missed = 0;
        double width = 0;
        for (int i = 0; i < trials; ++i) {
            std::vector<double> values;
            while (values.size() < count) values.push_back(normal(random) * (random() % 10 == 0 ? 100 : 1));
            const Interval centre = *hodges_lehmann(values, 0.05);
            missed += centre.low > 0 || centre.high < 0;
            width += (centre.high - centre.low) / trials;
        }
        EXPECT_LE(missed, trials * 7 / 100) << count;
        EXPECT_GE(missed, trials * 2 / 100) << count << ": wider than it says";
        if (count == 200) {
            EXPECT_LT(width, 0.45);  // normal values alone have 0.28
        }
    }
}

}  // namespace
}  // namespace kbench
