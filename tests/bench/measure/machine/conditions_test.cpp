// Blocks of samples with the clock meanwhile, and the energy of a forward.
#include "bench/measure/machine/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

ConditionReading clock_at(double at_s, std::optional<double> mhz) {
    return {at_s, mhz, std::nullopt, std::nullopt, std::nullopt};
}

/// `count` samples, one ending every 0.1 s; those of the second half take twice as long.
struct Series {
    std::vector<double> ms, ended_s;
    explicit Series(int count) {
        for (int i = 0; i < count; ++i) {
            ms.push_back(i < count / 2 ? 4 : 8);
            ended_s.push_back(0.1 * (i + 1));
        }
    }
};

TEST(ConditionBlocks, SetTheClockBesideTheTimesOfTheSameSamples) {
    const Series series(160);
    std::vector<ConditionReading> readings{clock_at(0, 100)};  // before the first sample
    for (int i = 0; i < 160; ++i) readings.push_back(clock_at(0.1 * i + 0.05, i < 80 ? 1800 : 1200 + i % 10));
    readings.push_back(clock_at(17, 100));  // after the last one
    const std::vector<ConditionBlock> blocks = condition_blocks(series.ms, series.ended_s, readings);
    ASSERT_EQ(blocks.size(), 16u);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        EXPECT_DOUBLE_EQ(blocks[b].until_s, static_cast<double>(b + 1)) << b;
        EXPECT_EQ(blocks[b].median_ms, b < 8 ? 4 : 8) << b;
        EXPECT_EQ(blocks[b].readings, 10) << b;
        EXPECT_DOUBLE_EQ(blocks[b].sm_clock_mhz.value_or(0), b < 8 ? 1800 : 1204.5) << b;
    }
}

TEST(ConditionBlocks, HaveNoClockWhereNoneWasRead) {
    const Series series(43);
    const std::vector<ConditionReading> readings{clock_at(0.2, 1700), clock_at(1.7, std::nullopt), clock_at(4.3, 1500)};
    const std::vector<ConditionBlock> blocks = condition_blocks(series.ms, series.ended_s, readings);
    ASSERT_EQ(blocks.size(), 8u) << "of five samples or more";
    EXPECT_EQ(blocks.front().sm_clock_mhz, 1700);
    EXPECT_EQ(blocks.back().sm_clock_mhz, 1500) << "at the moment when the last sample ended";
    EXPECT_DOUBLE_EQ(blocks.back().until_s, 4.3);
    for (std::size_t b = 1; b + 1 < blocks.size(); ++b) {
        EXPECT_FALSE(blocks[b].sm_clock_mhz) << b;
        EXPECT_EQ(blocks[b].readings, 0) << b;
    }
}

TEST(ConditionBlocks, AreNoneWithoutAClockOrWithFewSamples) {
    const Series series(160), few(9);
    const std::vector<ConditionReading> no_clock{clock_at(1, std::nullopt)}, clock{clock_at(0.5, 1700)};
    EXPECT_THAT(condition_blocks(series.ms, series.ended_s, no_clock), IsEmpty());
    EXPECT_THAT(condition_blocks(series.ms, series.ended_s, {}), IsEmpty());
    EXPECT_THAT(condition_blocks(few.ms, few.ended_s, clock), IsEmpty());
}

TEST(EnergyOf, IsPowerTimesTimeAndSaysOnWhatItRests) {
    Conditions counted;
    counted.power_w = {695, Origin::derived, "by the energy counter"};
    counted.energy_j = Quantity::derived(1390);
    EXPECT_DOUBLE_EQ(energy_of(counted, 0.004, 0.99).value.value(), 2.78);
    EXPECT_EQ(energy_of(counted, 0.004, 0.99).origin, Origin::derived);

    const Quantity idle = energy_of(counted, 0.004, 0.4);
    EXPECT_EQ(idle.origin, Origin::estimated) << "the mean power is of a device that waited";
    EXPECT_THAT(idle.reason, HasSubstr("busy for 40 % of the sampling"));

    Conditions read;
    read.power_w = Quantity::measured(500);
    read.energy_j = {1000, Origin::estimated, "mean of 100 power readings times 2 s"};
    EXPECT_EQ(energy_of(read, 0.004, 1).origin, Origin::estimated);
    EXPECT_THAT(energy_of(read, 0.004, 1).reason, HasSubstr("power readings"));

    Conditions none;
    none.power_w = Quantity::unavailable("no sensor");
    EXPECT_EQ(energy_of(none, 0.004, 0.4).origin, Origin::unavailable);
    EXPECT_EQ(energy_of(none, 0.004, 0.4).reason, "no sensor");
}

}  // namespace
}  // namespace kbench
