// The sampler with machines that behave and machines that do not.
#include "bench/profile/condition_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <stdexcept>

namespace kbench {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A machine whose nth reading is what `reading` says.
class FakeMachine : public MachineState {
  public:
    std::function<MachineReading(int)> reading = [](int) { return MachineReading{}; };
    std::atomic<std::uint64_t> mask_now = 0;
    std::atomic<int> readings = 0;
    std::chrono::milliseconds resolution = 0ms;

    MachineReading read() override { return reading(readings++); }
    std::uint64_t throttle_mask() override { return mask_now; }
    std::string throttle_unavailable() const override { return {}; }
    std::chrono::milliseconds period() const override { return 1ms; }
    std::chrono::milliseconds energy_resolution() const override { return resolution; }

    void wait_for_readings(int count) const {
        while (readings < count) std::this_thread::sleep_for(1ms);
    }
};

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

MachineReading healthy(double energy_j) {
    MachineReading reading;
    reading.sm_clock_mhz = Quantity::measured(1980);
    reading.memory_clock_mhz = Quantity::measured(3201);
    reading.power_w = Quantity::measured(500);
    reading.temperature_c = Quantity::measured(60);
    reading.energy_j = Quantity::measured(energy_j);
    return reading;
}

TEST(ConditionSampler, GivesMeansOfTheReadingsDuringTheWork) {
    FakeMachine machine;
    machine.reading = [](int n) {
        MachineReading reading = healthy(n);
        reading.sm_clock_mhz = Quantity::measured(n == 0 ? 0 : 1000 + 100 * (n % 2));  // idle at start()
        reading.energy_j = Quantity::unavailable("no counter");
        return reading;
    };
    ConditionSampler sampler(machine);
    sampler.start();
    machine.wait_for_readings(20);
    const Conditions conditions = sampler.stop();
    EXPECT_NEAR(conditions.sm_clock_mhz.value.value(), 1050, 5);
    EXPECT_EQ(conditions.sm_clock_mhz.origin, Origin::measured);
    EXPECT_EQ(conditions.memory_clock_mhz.value, 3201);
    EXPECT_EQ(conditions.power_w.value, 500);
    EXPECT_EQ(conditions.temperature_c.value, 60);
    EXPECT_THAT(conditions.throttle_reasons, IsEmpty());
}

TEST(ConditionSampler, KeepsEveryReadingInOrderWithItsTime) {
    FakeMachine machine;
    machine.reading = [](int n) {
        MachineReading reading = healthy(n);
        reading.power_w = Quantity::measured(100 + n);
        if (n % 2 == 1) reading.temperature_c = Quantity::unavailable("asleep");
        return reading;
    };
    ConditionSampler sampler(machine);
    sampler.start();
    machine.wait_for_readings(20);
    const Conditions conditions = sampler.stop();
    ASSERT_EQ(conditions.readings.size(), static_cast<std::size_t>(machine.readings.load()));
    EXPECT_EQ(conditions.readings.front().at_s, 0);
    for (std::size_t n = 0; n < conditions.readings.size(); ++n) {
        const ConditionReading& reading = conditions.readings[n];
        EXPECT_EQ(reading.power_w, 100.0 + static_cast<double>(n));
        EXPECT_EQ(reading.sm_clock_mhz, 1980);
        EXPECT_EQ(reading.memory_clock_mhz, 3201);
        EXPECT_EQ(reading.temperature_c.has_value(), n % 2 == 0);
        EXPECT_TRUE(n == 0 || reading.at_s > conditions.readings[n - 1].at_s) << n;
    }
    sampler.start();
    EXPECT_EQ(sampler.stop().readings.size(), 2u) << "those of the run before must not come back";
}

TEST(ConditionSampler, AReadingWithoutFiguresIsNotKept) {
    FakeMachine machine;
    machine.reading = [](int n) {
        if (n % 3 == 1) throw std::runtime_error("busy");
        return n % 3 == 2 ? MachineReading{} : healthy(n);
    };
    ConditionSampler sampler(machine);
    sampler.start();
    machine.wait_for_readings(9);
    const std::size_t kept = sampler.stop().readings.size();
    EXPECT_EQ(kept, static_cast<std::size_t>(machine.readings + 2) / 3);
}

TEST(ConditionReadings, AreThinnedEvenlyWithBothEnds) {
    for (const int n : {2, 511, 512, 513, 1023, 5000}) {
        std::vector<ConditionReading> readings(static_cast<std::size_t>(n));
        for (int i = 0; i < n; ++i) readings[static_cast<std::size_t>(i)].at_s = i;
        const std::vector<ConditionReading> few = thinned(readings, most_readings);
        ASSERT_EQ(few.size(), std::min(readings.size(), most_readings));
        EXPECT_EQ(few.front().at_s, 0);
        EXPECT_EQ(few.back().at_s, n - 1);
        const double stride = (n - 1.0) / (static_cast<double>(few.size()) - 1);
        for (std::size_t i = 0; i < few.size(); ++i)
            EXPECT_LT(std::abs(few[i].at_s - stride * static_cast<double>(i)), 1) << n << " " << i;
    }
}

TEST(ConditionSampler, PowerAndEnergyAreTheCountersAndNotTheReadings) {
    FakeMachine machine;
    const auto epoch = std::chrono::steady_clock::now();
    machine.reading = [epoch](int) { return healthy(1e6 + 695 * seconds_since(epoch)); };  // and 500 W by its readings
    ConditionSampler sampler(machine);
    sampler.start();
    const auto started = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(100ms);
    const double seconds = seconds_since(started);
    const Conditions conditions = sampler.stop();
    EXPECT_NEAR(conditions.power_w.value.value(), 695, 35);
    EXPECT_EQ(conditions.power_w.origin, Origin::derived);
    EXPECT_THAT(conditions.power_w.reason, HasSubstr("energy counter"));
    EXPECT_NEAR(conditions.energy_j.value.value(), 695 * seconds, 0.1 * 695 * seconds);
    EXPECT_EQ(conditions.energy_j.origin, Origin::derived);
}

TEST(ConditionSampler, ACounterThatMovesSeldomIsReadFromStepToStep) {
    FakeMachine machine;
    machine.resolution = 100ms;
    const auto epoch = std::chrono::steady_clock::now();
    machine.reading = [epoch](int) { return healthy(70 * std::floor(seconds_since(epoch) / 0.1)); };
    ConditionSampler sampler(machine);
    sampler.start();
    std::this_thread::sleep_until(epoch + 585ms);
    const Conditions conditions = sampler.stop();
    EXPECT_NEAR(conditions.power_w.value.value(), 700, 50) << "from end to end it moved by 350 J in 0.585 s: 598 W";
    EXPECT_NEAR(conditions.energy_j.value.value(), 700 * 0.585, 35) << "of the whole window";
}

TEST(ConditionSampler, AWindowHasNothingOfTheWarmUpBeforeIt) {
    FakeMachine machine;
    std::atomic<bool> warm = false;
    machine.reading = [&](int) {
        const bool is_warm = warm;
        if (!is_warm) std::this_thread::sleep_for(10ms);  // so that one is under way when the window begins
        MachineReading reading = healthy(0);
        reading.sm_clock_mhz = Quantity::measured(is_warm ? 1700 : 1000);
        reading.memory_clock_mhz = Quantity::measured(is_warm ? 3201 : 800);
        reading.power_w = Quantity::measured(is_warm ? 695 : 200);
        reading.temperature_c = Quantity::measured(is_warm ? 60 : 30);
        reading.energy_j = Quantity::unavailable("no counter");
        reading.throttle_mask = is_warm ? 0x4 : 0x20;
        return reading;
    };
    ConditionSampler sampler(machine);
    for (const int warm_up_readings : {1, 5}) {
        warm = false;
        sampler.start();
        const int before = machine.readings;
        machine.wait_for_readings(before + warm_up_readings);
        warm = true;
        sampler.begin_window();
        const auto began = std::chrono::steady_clock::now();
        EXPECT_FALSE(discards_sample(sampler.throttle_mask_now())) << "what throttled the warm-up is over";
        machine.wait_for_readings(machine.readings + 10);
        const Conditions conditions = sampler.stop();
        EXPECT_EQ(conditions.sm_clock_mhz.value, 1700);
        EXPECT_EQ(conditions.memory_clock_mhz.value, 3201);
        EXPECT_EQ(conditions.power_w.value, 695);
        EXPECT_EQ(conditions.temperature_c.value, 60);
        EXPECT_LE(conditions.energy_j.value.value(), 695 * seconds_since(began) * 1.1);
        EXPECT_THAT(conditions.throttle_reasons, ElementsAre("sw_power_cap"));
        ASSERT_FALSE(conditions.readings.empty());
        EXPECT_EQ(conditions.readings.front().at_s, 0);
        for (const ConditionReading& reading : conditions.readings) EXPECT_EQ(reading.sm_clock_mhz, 1700);
    }
}

TEST(ConditionSampler, TheCountersPowerIsTheWindowsAlone) {
    FakeMachine machine;
    std::mutex mutex;
    const auto epoch = std::chrono::steady_clock::now();
    std::optional<double> warm_since_s;
    machine.reading = [&](int) {
        const std::lock_guard lock(mutex);
        const double now_s = seconds_since(epoch);
        return healthy(200 * now_s + (warm_since_s ? 500 * (now_s - *warm_since_s) : 0));
    };
    ConditionSampler sampler(machine);
    sampler.start();
    std::this_thread::sleep_for(100ms);
    {
        const std::lock_guard lock(mutex);
        warm_since_s = seconds_since(epoch);
    }
    sampler.begin_window();
    std::this_thread::sleep_for(100ms);
    const Conditions conditions = sampler.stop();
    EXPECT_NEAR(conditions.power_w.value.value(), 700, 35) << "200 W in the warm-up, 450 W over both";
    EXPECT_NEAR(conditions.energy_j.value.value(), 70, 14);
}

TEST(ConditionSampler, AThrottledSampleIsStillSeenInTheWindow) {
    FakeMachine machine;
    std::atomic<bool> hot = false;
    machine.reading = [&](int n) {
        MachineReading reading = healthy(n);
        reading.throttle_mask = hot ? 0x40 : 0;
        return reading;
    };
    ConditionSampler sampler(machine);
    sampler.start();
    sampler.begin_window();
    EXPECT_FALSE(discards_sample(sampler.throttle_mask_now()));
    hot = true;
    machine.wait_for_readings(machine.readings + 5);
    hot = false;
    machine.wait_for_readings(machine.readings + 2);
    EXPECT_TRUE(discards_sample(sampler.throttle_mask_now()));
    EXPECT_THAT(sampler.stop().throttle_reasons, ElementsAre("hw_thermal_slowdown"));
}

TEST(ConditionSampler, BeginsNoWindowUnlessItRuns) {
    FakeMachine machine;
    ConditionSampler sampler(machine);
    sampler.begin_window();
    EXPECT_EQ(machine.readings, 0);
    EXPECT_EQ(sampler.stop().power_w.reason, "not sampled");
}

TEST(ConditionSampler, WithoutAnEnergyCounterEnergyIsAnEstimateThatSaysSo) {
    FakeMachine machine;
    machine.reading = [](int) {
        MachineReading reading = healthy(0);
        reading.energy_j = Quantity::unavailable("no counter here");
        return reading;
    };
    ConditionSampler sampler(machine);
    const auto started = std::chrono::steady_clock::now();
    sampler.start();
    machine.wait_for_readings(5);
    const Conditions conditions = sampler.stop();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    EXPECT_EQ(conditions.energy_j.origin, Origin::estimated);
    EXPECT_GT(conditions.energy_j.value.value(), 500 * 0.004);
    EXPECT_LT(conditions.energy_j.value.value(), 500 * seconds);
    EXPECT_THAT(conditions.energy_j.reason, testing::AllOf(HasSubstr("power"), HasSubstr("no counter here")));
}

TEST(ConditionSampler, ACounterTooCoarseForTheTimeIsNotUsed) {
    FakeMachine machine;
    machine.resolution = 100ms;
    machine.reading = [](int n) { return healthy(n < 5 ? 0 : 8.4); };  // one step of 84 W
    ConditionSampler sampler(machine);
    sampler.start();
    machine.wait_for_readings(10);
    const Conditions conditions = sampler.stop();
    EXPECT_EQ(conditions.energy_j.origin, Origin::estimated);
    EXPECT_THAT(conditions.energy_j.reason, HasSubstr("every 0.1 s"));
}

TEST(ConditionSampler, ACounterThatStandsStillIsNotZeroEnergy) {
    FakeMachine machine;
    machine.reading = [](int) { return healthy(1234); };
    ConditionSampler sampler(machine);
    sampler.start();
    EXPECT_EQ(sampler.stop().energy_j.origin, Origin::estimated);
    machine.reading = [](int) {
        MachineReading reading = healthy(1234);
        reading.power_w = Quantity::unavailable("no power either");
        return reading;
    };
    sampler.start();
    const Conditions conditions = sampler.stop();
    EXPECT_EQ(conditions.energy_j.origin, Origin::unavailable);
    EXPECT_EQ(conditions.power_w.reason, "no power either");
}

TEST(ConditionSampler, PowerIsDerivedFromEnergyWhereOnlyEnergyIsCounted) {
    FakeMachine machine;
    machine.reading = [](int n) {
        MachineReading reading = healthy(n);
        reading.power_w = Quantity::unavailable("energy only");
        return reading;
    };
    ConditionSampler sampler(machine);
    sampler.start();
    machine.wait_for_readings(5);
    const Conditions conditions = sampler.stop();
    EXPECT_EQ(conditions.power_w.origin, Origin::derived);
    EXPECT_GT(conditions.power_w.value.value(), 0);
}

TEST(ConditionSampler, ThrottlingIsSeenOnceByTheNextQuestion) {
    FakeMachine machine;
    machine.reading = [](int n) {
        MachineReading reading = healthy(n);
        reading.throttle_mask = n == 3 ? 0x40 : 0x4;
        return reading;
    };
    ConditionSampler sampler(machine);
    sampler.start();
    machine.wait_for_readings(10);
    // It was over before it was asked for: the readings in between remember it.
    EXPECT_TRUE(discards_sample(sampler.throttle_mask_now()));
    EXPECT_FALSE(discards_sample(sampler.throttle_mask_now()));
    machine.mask_now = 0x80;
    EXPECT_TRUE(discards_sample(sampler.throttle_mask_now()));
    EXPECT_THAT(sampler.stop().throttle_reasons, ElementsAre("sw_power_cap", "hw_thermal_slowdown", "hw_power_brake"));
}

TEST(ConditionSampler, ReasonsOfOneRunDoNotReachTheNext) {
    FakeMachine machine;
    machine.reading = [](int) {
        MachineReading reading = healthy(0);
        reading.throttle_mask = 0x20;
        return reading;
    };
    ConditionSampler sampler(machine);
    sampler.start();
    EXPECT_THAT(sampler.stop().throttle_reasons, ElementsAre("sw_thermal_slowdown"));
    machine.reading = [](int n) { return healthy(n); };
    sampler.start();
    EXPECT_EQ(sampler.throttle_mask_now(), 0u);
    EXPECT_THAT(sampler.stop().throttle_reasons, IsEmpty());
}

TEST(ConditionSampler, AMachineThatThrowsGivesReasonsInsteadOfFigures) {
    FakeMachine machine;
    machine.reading = [](int) -> MachineReading { throw std::runtime_error("the GPU fell off the bus"); };
    ConditionSampler sampler(machine);
    sampler.start();
    machine.wait_for_readings(3);
    const Conditions conditions = sampler.stop();
    for (const Quantity& quantity : {conditions.sm_clock_mhz, conditions.memory_clock_mhz, conditions.power_w,
                                     conditions.temperature_c, conditions.energy_j}) {
        EXPECT_EQ(quantity.origin, Origin::unavailable);
        EXPECT_EQ(quantity.reason, "the GPU fell off the bus");
    }
}

TEST(ConditionSampler, OneFailedReadingDoesNotSpoilTheOthers) {
    FakeMachine machine;
    machine.reading = [](int n) {
        if (n == 2) throw std::runtime_error("busy");
        return healthy(n);
    };
    ConditionSampler sampler(machine);
    sampler.start();
    machine.wait_for_readings(6);
    const Conditions conditions = sampler.stop();
    EXPECT_EQ(conditions.sm_clock_mhz.value, 1980);
    EXPECT_EQ(conditions.power_w.origin, Origin::derived);
}

TEST(ConditionSampler, StopWithoutStartHasNoFigures) {
    FakeMachine machine;
    EXPECT_EQ(ConditionSampler(machine).stop().power_w.reason, "not sampled");
}

TEST(ConditionSampler, EndsItsThreadWhenDestroyed) {
    FakeMachine machine;
    {
        ConditionSampler sampler(machine);
        sampler.start();
    }
    const int readings = machine.readings;
    std::this_thread::sleep_for(10ms);
    EXPECT_EQ(machine.readings, readings);
}

TEST(ThrottleReasons, OnlyHeatAndHardwareDiscardASample) {
    EXPECT_FALSE(discards_sample(0));
    EXPECT_FALSE(discards_sample(0x1 | 0x2 | 0x4 | 0x10 | 0x100));
    for (const std::uint64_t bit : {0x8, 0x20, 0x40, 0x80}) EXPECT_TRUE(discards_sample(bit | 0x4)) << bit;
}

TEST(ThrottleReasons, IdleIsNotNamedAndUnknownBitsAre) {
    EXPECT_THAT(throttle_names(0x1 | 0x4 | 0x400), ElementsAre("sw_power_cap", "0x400"));
}

}  // namespace
}  // namespace kbench
