// The clock between two places, from readings that were made up.
#include "bench/profile/clock_readings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace kbench {
namespace {

using cuda::probe::ClockReading;

/// SMs with cycle counters of their own, read at two places of some launches.
struct MadeReadings {
    std::size_t sms = 4;
    int launches = 20;
    double us = 50, mhz = 1500;
    double tick_us = 0.032;      ///< the timer's resolution
    std::vector<bool> only_end;  ///< by SM: not read at the first place

    std::vector<ClockReading> made() const {
        std::vector<ClockReading> all;
        for (int launch = 0; launch < launches; ++launch)
            for (const double place : {0.0, 1.0})
                for (std::size_t sm = 0; sm < sms; ++sm) {
                    if (place == 0 && sm < only_end.size() && only_end[sm]) {
                        all.push_back({});
                        continue;
                    }
                    const double at_us = 1e6 + launch * 1000.37 + place * us;
                    const double offset = 1e9 * static_cast<double>(sm);
                    all.push_back({static_cast<std::uint64_t>(offset + at_us * mhz),
                                   static_cast<std::uint64_t>(std::floor(at_us / tick_us) * tick_us * 1e3)});
                }
        return all;
    }
    std::optional<double> read() const {
        const std::vector<ClockReading> all = made();
        return clock_mhz({all, 2, sms}, 0, 1);
    }
};

TEST(ClockReadings, AnSmIsComparedWithItselfWhateverItsCounterStartedAt) {
    EXPECT_NEAR(MadeReadings{}.read().value(), 1500, 2);
}

TEST(ClockReadings, TicksOfAMicrosecondAverageOutOverLaunches) {
    EXPECT_NEAR((MadeReadings{.launches = 60, .tick_us = 1, .only_end = {}}.read().value()), 1500, 15);
}

TEST(ClockReadings, AnSmThatWasReadAtOnePlaceAloneSaysNothing) {
    EXPECT_NEAR((MadeReadings{.only_end = {true, true, true}}.read().value()), 1500, 2);
    EXPECT_FALSE((MadeReadings{.only_end = {true, true, true, true}}.read()));
}

TEST(ClockReadings, WhatIsTooShortForTheTimerIsNotRead) {
    EXPECT_FALSE((MadeReadings{.us = 19, .only_end = {}}.read())) << "shorter than an interval may be";
    EXPECT_TRUE((MadeReadings{.us = 21, .only_end = {}}.read()));
    EXPECT_FALSE((MadeReadings{.launches = 1, .us = 100, .only_end = {}}.read())) << "less than 200 us in all";
    EXPECT_TRUE((MadeReadings{.launches = 1, .us = 250, .only_end = {}}.read()));
    EXPECT_FALSE((MadeReadings{.launches = 0, .only_end = {}}.read()));
}

TEST(ClockReadings, TheMedianOfTheSmsHidesOneThatJumped) {
    const MadeReadings made;
    std::vector<ClockReading> all = made.made();
    for (std::size_t i = 0; i < all.size(); i += made.sms) all[i].cycles += i * 1000000;
    EXPECT_NEAR(clock_mhz({all, 2, made.sms}, 0, 1).value(), 1500, 2);
}

}  // namespace
}  // namespace kbench
