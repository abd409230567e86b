// When a CPU's roofs are read between samples, and what a reading does to them.
#include "bench/measure/point/roof_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "bench/device/device.h"
#include "bench/profile/profiler.h"

namespace kbench {
namespace {

using testing::ElementsAre;

/// A host whose clock stands still unless something takes time.
struct Host {
    double now_s = 0;
    double reading_s = 0.05;
    int read = 0;
    std::vector<double> value = {10};

    RoofWatch watch() {
        return RoofWatch({{"cpu_dram_read"},
                          [this] {
                              now_s += reading_s;
                              ++read;
                              return value;
                          }},
                         [this] { return now_s; });
    }
    /// One chunk of a forward that takes so long.
    std::function<std::vector<double>()> forward(double ms, int& ran) {
        return [this, ms, &ran] {
            ++ran;
            now_s += ms * 1e-3;
            return std::vector<double>{ms};
        };
    }
};

TEST(RoofWatch, ReadsAtFirstAndForLessThanATenthOfTheTime) {
    for (const double reading_s : {0.001, 0.05, 0.5}) {
        Host host{.reading_s = reading_s};
        RoofWatch watch = host.watch();
        EXPECT_TRUE(watch.look());
        EXPECT_FALSE(watch.look());
        for (; host.now_s < 60; host.now_s += 0.01) watch.look();
        EXPECT_LE(host.read * reading_s, 0.1 * host.now_s) << reading_s;
        EXPECT_GE(host.read, reading_s > 0.1 ? 10 : 90) << reading_s << ": and yet often";
        EXPECT_EQ(watch.readings()[0].values.size(), static_cast<std::size_t>(host.read));
    }
}

TEST(RoofWatch, WhatIsReadWithoutACpuIsDropped) {
    Host host;
    RoofWatch watch = host.watch();
    watch.look();
    host.now_s += 10;
    host.value = {};
    EXPECT_TRUE(watch.look()) << "it ran all the same";
    EXPECT_EQ(Host().watch().readings().size(), 0u) << "nothing was read yet";
    host.now_s += 10;
    host.value = {12};
    watch.look();
    ASSERT_EQ(watch.readings().size(), 1u);
    EXPECT_EQ(watch.readings()[0].ceiling, "cpu_dram_read");
    EXPECT_THAT(watch.readings()[0].values, ElementsAre(10, 12));
}

TEST(RoofWatch, AShortForwardRunsOnceMoreAfterAReading) {
    for (const auto& [ms, more] : {std::pair{1.0, true}, {500.0, false}}) {
        Host host;
        RoofWatch watch = host.watch();
        int ran = 0, samples = 0;
        const auto chunk = watched(host.forward(ms, ran), &watch);
        for (; host.now_s < 5; ++samples) EXPECT_THAT(chunk(), ElementsAre(ms));
        // Before the first nothing is known of how long it takes.
        EXPECT_EQ(ran - samples, more ? host.read - 1 : 0) << ms;
        EXPECT_GT(host.read, 2);
        EXPECT_LE(watch.spent_s(), 0.1 * host.now_s + 0.05) << "what runs again counts";
    }
    int ran = 0;
    Host host;
    watched(host.forward(1, ran), nullptr)();
    EXPECT_EQ(ran, 1);
}

TEST(RoofWatch, IsForCpusWithRoofsAndTimeAlone) {
    const std::unique_ptr<Device> device = make_cpu_device();
    const std::unique_ptr<Profiler> profiler = make_profiler(*device);
    CeilingRun run;
    Ceiling& dram = run.ceilings.emplace_back();
    dram.name = "cpu_dram_read";
    dram.value = Quantity::measured(50);
    const auto is_made = [&](const Roofs& roofs, double budget_s) {
        SamplerOptions sampler;
        sampler.time_budget_s = budget_s;
        return make_roof_watch(*device, profiler->machine_state(), roofs, Precision::fp32, sampler) != nullptr;
    };
    EXPECT_TRUE(is_made(Roofs(run, "cpu"), 7));
    EXPECT_FALSE(is_made(Roofs(run, "cpu"), 1)) << "a trial";
    EXPECT_FALSE(is_made(Roofs(), 7));
}

TEST(RoofWatch, HalfOfARoofIsAWarning) {
    CeilingRun run;
    Ceiling& dram = run.ceilings.emplace_back();
    dram.name = "cpu_dram_read";
    dram.value = Quantity::measured(50);
    const auto warning = [roofs = Roofs(run, "cpu")](std::vector<double> values) {
        Conditions conditions;
        conditions.roofs = {{"cpu_dram_read", std::move(values)}};
        return disturbance_warning(roofs, conditions);
    };
    EXPECT_THAT(warning({24, 24, 49}), testing::HasSubstr("cpu_dram_read reached 48 % of its roof"));
    EXPECT_EQ(warning({26, 26, 12}), "");
    EXPECT_EQ(warning({12, 12}), "") << "too few";
    EXPECT_EQ(warning({}), "") << "all were dropped";
    EXPECT_EQ(disturbance_warning({}, {}), "");
}

}  // namespace
}  // namespace kbench
