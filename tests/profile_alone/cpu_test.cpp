// The profiler as a library of its own, on a CPU: two functions of a program that knows nothing else of kbench are
// counted, and the machine's state is read. This program links kbench_profile alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "bench/profile/condition_sampler.h"
#include "bench/profile/profiler.h"
#include "kbench/error.h"

namespace kbench {
namespace {

class ProfileAlone : public testing::Test {
  protected:
    DeviceList devices_ = make_devices(BackendKind::cpu);
    Device& device_ = *devices_.front();
    std::unique_ptr<Profiler> profiler_ = make_profiler(device_);
};

TEST_F(ProfileAlone, CountsTwoFunctions) {
    std::vector<double> values(1 << 16, 1.0);
    double total = 0;
    int fills = 0;
    profiler_->watch({{.group = "",
                       .name = "fill",
                       .enqueue =
                           [&] {
                               std::ranges::fill(values, 2.0);
                               ++fills;
                           },
                       .least_written_bytes = 8.0 * (1 << 16)},
                      {.group = "",
                       .name = "sum",
                       .enqueue = [&] { total = std::accumulate(values.begin(), values.end(), 0.0); },
                       .least_read_bytes = 8.0 * (1 << 16)}});
    EXPECT_EQ(fills, 0) << "nothing runs yet";
    const CounterRequest core;
    EXPECT_NO_THROW(profiler_->check(core));
    const RangeCounters counters = profiler_->count(core);
    EXPECT_EQ(fills, 1);
    EXPECT_EQ(total, 2.0 * (1 << 16));
    ASSERT_EQ(counters.by_range.size(), 2u);
    ASSERT_FALSE(counters.run.metrics.empty());
    for (const CountedMetric& metric : counters.run.metrics) {
        SCOPED_TRACE(metric.name);
        for (const auto& range : counters.by_range)
            EXPECT_EQ(range.contains(metric.name), metric.origin != Origin::unavailable);
        if (metric.origin == Origin::unavailable || metric.origin == Origin::estimated) {
            EXPECT_FALSE(metric.reason.empty());
        }
        if (metric.name == "dram_write_bytes" && metric.origin == Origin::estimated) {
            EXPECT_EQ(counters.by_range[0].at(metric.name), 8.0 * (1 << 16));
            EXPECT_EQ(counters.by_range[1].at(metric.name), 0);
        }
    }
}

TEST_F(ProfileAlone, RefusesWhatThisDeviceCannotTell) {
    EXPECT_THROW(profiler_->check({.sets = {"tensor"}, .metrics = {}, .required = true}), UsageError);
    const std::unique_ptr<DeviceGraph> graph = device_.capture([] {});
    EXPECT_THROW(profiler_->record_kernels(*graph, 1, 0), DeviceError);
}

TEST_F(ProfileAlone, ReadsTheMachinesState) {
    ConditionSampler sampler(profiler_->machine_state());
    sampler.start();
    const Conditions conditions = sampler.stop();
    for (const Quantity& quantity : {conditions.sm_clock_mhz, conditions.power_w, conditions.temperature_c})
        EXPECT_TRUE(quantity.value || !quantity.reason.empty()) << "a figure, or why there is none";
    for (const auto& [what, found] : profiler_->probe_counters())
        EXPECT_TRUE(found.value || !found.reason.empty()) << what;
}

TEST_F(ProfileAlone, TimesAGraphByEvents) {
    int runs = 0;
    const std::unique_ptr<DeviceGraph> graph = device_.capture([&] { ++runs; });
    EXPECT_EQ(runs, 0);
    EXPECT_GE(last_launch_ms(device_, *graph, 3), 0);
    EXPECT_EQ(runs, 3);
}

}  // namespace
}  // namespace kbench
