// A line through times at three sizes, each time planted.
#include "analysis/facts/size_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace kbench {
namespace {

using testing::HasSubstr;

constexpr double model_mhz = 1500;

SizeTime size_time(double factor, double us, double mhz = model_mhz) {
    SizeTime time{factor, 1e9 * factor, "", "algo 66", {}, Quantity::measured(mhz)};
    time.us.n = 20;
    time.us.median = time.us.ci_low = time.us.ci_high = us;
    return time;
}
/// 3 us and 2 us of each unit of work.
SizeScaling line() { return {{0}, "k", "", {size_time(1, 5), size_time(2, 7), size_time(4, 11)}}; }
SizeFit fit_of(const SizeScaling& scaling) { return fit_size(scaling, Interval::exactly(model_mhz)); }

TEST(SizeFit, SplitsWhatGrowsFromWhatDoesNot) {
    const SizeFit fit = fit_of(line());
    EXPECT_EQ(fit.unavailable, "");
    EXPECT_EQ(fit.axis, "k");
    for (const SizeParts& parts : {fit.by_clock, fit.by_memory}) {
        EXPECT_NEAR(parts.fixed_us.value, 3, 1e-9);
        EXPECT_NEAR(parts.slope_us.value, 2, 1e-9);
        EXPECT_NEAR(parts.misfit_us, 0, 1e-9);
        EXPECT_NEAR(parts.fixed_us.high, 3, 1e-9);
    }
}

TEST(SizeFit, IsTestedOnTheSizeInBetween) {
    SizeScaling bent = line();
    bent.times[1] = size_time(2, 6.5);
    const SizeParts parts = fit_of(bent).by_clock;
    EXPECT_NEAR(parts.fixed_us.value, 3, 1e-9);
    EXPECT_NEAR(parts.misfit_us, 0.5, 1e-9);
    EXPECT_NEAR(parts.fixed_us.low, 2.5, 1e-9);
    EXPECT_NEAR(parts.fixed_us.high, 3.5, 1e-9);
    EXPECT_NEAR(parts.slope_us.low, 1.5, 1e-9);
    EXPECT_NEAR(parts.slope_us.high, 2.5, 1e-9);
}

TEST(SizeFit, HasTheEndsOfTheTimes) {
    SizeScaling wide = line();
    wide.times[0].us.ci_low = 4.7;
    wide.times[2].us.ci_high = 11.3;
    const SizeParts parts = fit_of(wide).by_clock;
    EXPECT_NEAR(parts.fixed_us.low, (4 * 4.7 - 11.3) / 3, 1e-9);
    EXPECT_NEAR(parts.fixed_us.high, 3, 1e-9);
    EXPECT_NEAR(parts.slope_us.high, (11.3 - 4.7) / 3, 1e-9);
}

TEST(SizeFit, IsAtTheSizeThatTheStepHas) {
    SizeScaling shorter = line();
    shorter.axis = "time_steps";
    shorter.times = {size_time(0.25, 5), size_time(0.5, 7), size_time(1, 11)};
    const SizeParts parts = fit_of(shorter).by_clock;
    EXPECT_NEAR(parts.fixed_us.value, 3, 1e-9);
    EXPECT_NEAR(parts.slope_us.value, 8, 1e-9);
    shorter.times.back().factor = 1.5;
    EXPECT_EQ(fit_of(shorter).unavailable, "it was not timed at its own size");
}

/// Where the operands of attention grow fourfold as its sequence doubles.
TEST(SizeFit, GoesByTheWorkAndNotByTheSize) {
    SizeScaling squared = line();
    squared.times = {size_time(1, 5), size_time(2, 11), size_time(4, 35)};
    for (SizeTime& time : squared.times) time.work_flops = 1e9 * time.factor * time.factor;
    EXPECT_NEAR(fit_of(squared).by_clock.fixed_us.value, 3, 1e-9);
    EXPECT_NEAR(fit_of(squared).by_clock.misfit_us, 0, 1e-9);
    SizeScaling bytes = line();
    for (SizeTime& time : bytes.times) time.work_flops = 0;
    EXPECT_NEAR(fit_of(bytes).by_clock.fixed_us.value, 3, 1e-9);
}

TEST(SizeFit, IsAtTheClockOfTheModel) {
    SizeScaling quick = line();
    for (SizeTime& time : quick.times) time.sm_clock_mhz = Quantity::measured(2 * model_mhz);
    const SizeFit fit = fit_of(quick);
    EXPECT_NEAR(fit.by_clock.fixed_us.value, 6, 1e-9);
    EXPECT_NEAR(fit.by_clock.slope_us.value, 4, 1e-9);
    EXPECT_NEAR(fit.by_memory.fixed_us.value, 6, 1e-9);
    EXPECT_NEAR(fit.by_memory.slope_us.value, 2, 1e-9);
    quick.times[1].us.median = quick.times[1].us.ci_low = quick.times[1].us.ci_high = 6.5;
    EXPECT_NEAR(fit_of(quick).by_clock.misfit_us, 1, 1e-9);
}

TEST(SizeFit, HasTheEndsOfTheClockOfTheModel) {
    const SizeParts parts = fit_size(line(), {model_mhz, model_mhz / 1.2, model_mhz * 1.5}).by_clock;
    EXPECT_NEAR(parts.fixed_us.high, 3 * 1.2, 1e-9);
    EXPECT_NEAR(parts.fixed_us.low, 2, 1e-9);
}

/// The largest size draws the clock down to a half: its time is as long as at 4 times more cycles.
TEST(SizeFit, TakesEachSizeAtItsOwnClock) {
    SizeScaling slower = line();
    slower.times[2] = size_time(4, 22, model_mhz / 2);
    EXPECT_NEAR(fit_of(slower).by_clock.fixed_us.value, 3, 1e-9);
    EXPECT_NEAR(fit_of(slower).by_clock.slope_us.value, 2, 1e-9);
    slower.times[2] = size_time(4, 3 * 2 + 8, model_mhz / 2);
    EXPECT_NEAR(fit_of(slower).by_memory.fixed_us.value, 3, 1e-9);
    EXPECT_NEAR(fit_of(slower).by_memory.slope_us.value, 2, 1e-9);
}

TEST(SizeFit, WithoutAClockRescalesNothing) {
    SizeScaling unknown = line();
    unknown.times[1].sm_clock_mhz = Quantity::unavailable("not read");
    unknown.times[0].sm_clock_mhz = unknown.times[2].sm_clock_mhz = Quantity::measured(3000);
    EXPECT_NEAR(fit_of(unknown).by_clock.fixed_us.value, 3, 1e-9);
    EXPECT_NEAR(fit_size(line(), {}).by_clock.fixed_us.value, 3, 1e-9);
}

TEST(SizeFit, HasNoNegativePart) {
    SizeScaling nothing_fixed = line();
    nothing_fixed.times = {size_time(1, 2), size_time(2, 4), size_time(4, 8.01)};
    nothing_fixed.times[0].us.ci_high = 2.1;
    const SizeFit fit = fit_of(nothing_fixed);
    EXPECT_EQ(fit.unavailable, "");
    EXPECT_EQ(fit.by_clock.fixed_us.value, 0);
    EXPECT_EQ(fit.by_clock.fixed_us.low, 0);
    EXPECT_GT(fit.by_clock.fixed_us.high, 0.1);
}

TEST(SizeFit, RefusesWhatIsNoSeriesOfSizes) {
    const auto reason = [](auto&& spoil) {
        SizeScaling scaling = line();
        spoil(scaling);
        return fit_of(scaling).unavailable;
    };
    EXPECT_EQ(reason([](SizeScaling& s) { s.unavailable = "the algorithm cannot be pinned"; }),
              "the algorithm cannot be pinned");
    EXPECT_THAT(reason([](SizeScaling& s) { s.times.pop_back(); }), HasSubstr("timed at 2 sizes"));
    EXPECT_THAT(reason([](SizeScaling& s) { s.times[2].implementation = "algo 67"; }),
                HasSubstr("at 4 times its k it was run by another implementation"));
    EXPECT_THAT(reason([](SizeScaling& s) { s.times[1].work_flops = 0; }), HasSubstr("not known at every size"));
    EXPECT_THAT(reason([](SizeScaling& s) { s.times[1].work_flops = 1e9; }), HasSubstr("do not rise"));
    EXPECT_THAT(reason([](SizeScaling& s) { s.times[2].factor = 2; }), HasSubstr("do not rise"));
    EXPECT_THAT(reason([](SizeScaling& s) { s.times[1] = size_time(2, 5); }),
                HasSubstr("at 2 times its k it took no longer than at 1"));
    for (const double us :
         {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
        EXPECT_THAT(reason([us](SizeScaling& s) { s.times[0] = size_time(1, us); }), HasSubstr("there is no time"));
    EXPECT_THAT(reason([](SizeScaling& s) { s.times[0].us.ci_low = 6; }), HasSubstr("there is no time"));
    EXPECT_THAT(reason([](SizeScaling& s) { s.times[2] = size_time(4, 40), s.times[1] = size_time(2, 16.6666666); }),
                HasSubstr("grows faster than its work"));
}

}  // namespace
}  // namespace kbench
