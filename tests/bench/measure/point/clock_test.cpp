// A sample lasts long beside what its clock can tell, however short a run is.
#include "bench/measure/point/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

TEST(Clock, TicksInNoTimeAtAll) {
    const double cpu_ms = clock_tick_ms(false);
    EXPECT_GT(cpu_ms, 0);
    EXPECT_LT(cpu_ms, 5) << "the coarsest clock of Linux ticks in 4 ms";
    EXPECT_EQ(clock_tick_ms(false), cpu_ms) << "measured once";
    EXPECT_EQ(clock_tick_ms(true), 0.5e-3) << "of CUDA's events";
}

TEST(Clock, AsksForMoreRunsWhereOneIsShort) {
    constexpr double tick_ms = 20e-6;
    EXPECT_EQ(runs_for_clock(1.0, 1, tick_ms), 1u);
    EXPECT_EQ(runs_for_clock(2e-3, 1, tick_ms), 1u) << "just 100 ticks";
    EXPECT_EQ(runs_for_clock(30e-6, 1, tick_ms), 84u) << "30 ns: 2.5 us in place of the 2 us that are needed";
    EXPECT_EQ(runs_for_clock(30e-6, 84, tick_ms), 84u);
    EXPECT_EQ(runs_for_clock(20e-6, 84, tick_ms), 125u) << "they became shorter";
    EXPECT_EQ(runs_for_clock(0, 1, tick_ms), 125u) << "not seen at all";
    EXPECT_GT(runs_for_clock(0, 125, tick_ms), 125u);
    EXPECT_EQ(runs_for_clock(0, std::size_t{1} << 20, tick_ms), std::size_t{1} << 20) << "not for ever";
}

}  // namespace
}  // namespace kbench
