// The SMs' clock between kernels of known cycles: beside events, beside counters, in a capture, on a part of a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/device/multiprocessors.h"
#include "bench/profile/clock_marks.h"
#include "bench/profile/profiler.h"
#include "kbench/error.h"
#include "kernels/spin.h"

namespace kbench {
namespace {

constexpr std::int64_t cycles = 400000;  // some 200 us
constexpr int kernels = 10;

class ClockMarksOnDevice : public testing::Test {
  protected:
    void SetUp() override {
        if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
        device_ = make_cuda_device();
        spin(*device_);
        device_->synchronize();
    }
    static void spin(Device& device, std::int64_t length = cycles) {
        cuda::spin(length, device.multiprocessors(), static_cast<cudaStream_t>(device.stream()));
    }
    static void chain(Device& device) {
        for (int k = 0; k < kernels; ++k) spin(device);
    }
    /// Clocks rise from idle within some 10 ms.
    static void warm_up(Device& device) {
        for (int i = 0; i < 50; ++i) chain(device);
        device.synchronize();
    }

    std::unique_ptr<Device> device_;
};

TEST_F(ClockMarksOnDevice, AChainOfKnownCyclesHasTheClockOfItsTime) {
    const auto marks = make_clock_marks(*device_, 2);
    const auto graph = capture_between(*device_, marks.get(), [&] { chain(*device_); });
    const auto start = device_->make_event(), end = device_->make_event();
    warm_up(*device_);
    graph->launch();
    start->record();
    constexpr int launches = 10;
    for (int i = 0; i < launches; ++i) {
        graph->launch();
        marks->keep();
    }
    end->record();
    device_->synchronize();
    // Beside its cycles a launch takes a mark's and some gaps' time, 0.5 to 1 %.
    const double by_events = static_cast<double>(cycles) * kernels * launches / end->ms_since(*start) * 1e-3;
    const Quantity mhz = measured_clock(marks.get());
    ASSERT_TRUE(mhz.value) << mhz.reason;
    EXPECT_EQ(mhz.origin, Origin::measured);
    EXPECT_GT(*mhz.value, by_events);
    EXPECT_LT(*mhz.value, by_events * 1.03);
}

TEST_F(ClockMarksOnDevice, ItIsTheCountersClock) {
    const auto marks = make_clock_marks(*device_, 2);
    const auto graph = capture_between(*device_, marks.get(), [&] { chain(*device_); });
    warm_up(*device_);
    for (int i = 0; i < 10; ++i) {
        graph->launch();
        marks->keep();
    }
    const Quantity mhz = measured_clock(marks.get());
    ASSERT_TRUE(mhz.value) << mhz.reason;
    const auto profiler = make_profiler(*device_);
    profiler->watch({{.group = "", .name = "spin", .enqueue = [&] { spin(*device_, 20 * cycles); }}});
    RangeCounters counted;
    try {
        counted = profiler->count({.sets = {"core"}, .metrics = {}, .required = false});
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    const auto& values = counted.by_range.front();
    ASSERT_TRUE(values.contains("sm_cycles_elapsed") && values.contains("time"));
    const double counted_mhz = values.at("sm_cycles_elapsed") / values.at("time") * 1e3;
    std::cout << "by marks " << *mhz.value << " MHz, by counters " << counted_mhz << " MHz\n";
    EXPECT_NEAR(*mhz.value / counted_mhz, 1, 0.01);
}

TEST_F(ClockMarksOnDevice, LaunchesThatAreNotKeptAreNotInTheMeanAndOldOnesMakeRoom) {
    const auto marks = make_clock_marks(*device_, 2, 4);
    const auto graph = capture_between(*device_, marks.get(), [&] { chain(*device_); });
    graph->launch();
    EXPECT_FALSE(measured_clock(marks.get()).value);
    warm_up(*device_);
    for (int i = 0; i < 11; ++i) {
        graph->launch();
        marks->keep();
    }
    EXPECT_TRUE(measured_clock(marks.get()).value);
}

TEST_F(ClockMarksOnDevice, EveryPairOfPlacesHasItsClockAndAShortOneHasNone) {
    const auto marks = make_clock_marks(*device_, 4);
    const auto graph = device_->capture([&] {
        marks->put(0);
        chain(*device_);
        marks->put(1);
        spin(*device_, 1000);
        marks->put(2);
        chain(*device_);
        marks->put(3);
    });
    warm_up(*device_);
    for (int i = 0; i < 5; ++i) {
        graph->launch();
        marks->keep();
    }
    EXPECT_FALSE(marks->mhz(1, 2));
    ASSERT_TRUE(marks->mhz(0, 1) && marks->mhz(2, 3) && marks->mhz(0, 3));
    EXPECT_NEAR(*marks->mhz(0, 1) / *marks->mhz(2, 3), 1, 0.02);
    EXPECT_NEAR(*marks->mhz(0, 3) / *marks->mhz(2, 3), 1, 0.02);
}

TEST_F(ClockMarksOnDevice, AReadingCostsAFewMicroseconds) {
    constexpr int places = 15;
    const auto marks = make_clock_marks(*device_, places);
    const auto capture = [&](bool marked) {
        return device_->capture([&] {
            for (int p = 0; p < places; ++p) {
                if (marked) marks->put(p);
                spin(*device_, 40000);
            }
        });
    };
    const auto plain = capture(false), marked = capture(true);
    warm_up(*device_);
    std::vector<double> cost_us;
    for (int i = 0; i < 9; ++i)
        cost_us.push_back((last_launch_ms(*device_, *marked, 5) - last_launch_ms(*device_, *plain, 5)) * 1e3 / places);
    std::ranges::sort(cost_us);
    std::cout << "a reading costs " << cost_us[4] << " us\n";
    EXPECT_GT(cost_us[4], 0);
    EXPECT_LT(cost_us[4], 6);
}

TEST_F(ClockMarksOnDevice, APartOfAGpuReadsItsOwnSms) {
    std::vector<int> counts;
    try {
        counts = counts_at_shares(possible_multiprocessors(*device_));
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    const std::unique_ptr<Device> part = make_cuda_device(counts.back());
    const auto marks = make_clock_marks(*part, 2);
    spin(*part);
    part->synchronize();
    const auto graph = capture_between(*part, marks.get(), [&] { chain(*part); });
    warm_up(*part);
    for (int i = 0; i < 5; ++i) {
        graph->launch();
        marks->keep();
    }
    EXPECT_TRUE(measured_clock(marks.get()).value);
}

TEST(ClockMarks, AreNotPutOnACpu) {
    const std::unique_ptr<Device> cpu = make_cpu_device(1);
    EXPECT_EQ(make_clock_marks(*cpu, 2), nullptr);
    int runs = 0;
    capture_between(*cpu, nullptr, [&] { ++runs; })->launch();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(measured_clock(nullptr).origin, Origin::unavailable);
}

}  // namespace
}  // namespace kbench
