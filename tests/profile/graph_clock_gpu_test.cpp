// The clock inside the graph of a whole run: every large step has one, near NVML's and not above the GPU's highest.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "analysis/facts/point_facts.h"
#include "bench/device/device.h"
#include "bench/measure/sweep/run.h"
#include "bench/profile/profiler.h"
#include "models/gpt2.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

TEST(GraphClockOnDevice, EveryGemmOfAForwardHasItsOwnClock) {
    if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
    const std::unique_ptr<Device> device = make_cuda_device();
    const std::unique_ptr<Profiler> profiler = make_profiler(*device);
    const TemporaryDirectory directory;
    RunOptions options;
    options.model = gpt2_spec(gpt2_config("gpt2"));
    options.values["seq"] = {1024};
    options.values["batch"] = {1};
    options.values["precision"] = {"fp16"};
    options.out = options.cache_directory = directory / "out";
    options.sampler.time_budget_s = 1;
    options.verify = false;
    options.step_runs = 5;
    options.activity_runs = 3;
    options.marginal_s = options.sm_scaling_s = 0;
    Result result;
    Progress progress;
    run_points(options, *device, *profiler, result, progress);
    ASSERT_EQ(result.points.size(), 1u);
    const Point& point = result.points.front();
    ASSERT_TRUE(point.graph_clock) << point.reason;
    const GraphClock& clock = *point.graph_clock;
    ASSERT_EQ(clock.unavailable, "");
    ASSERT_EQ(clock.step_mhz.size(), point.steps.size());
    GpuInfo gpu = device->info().gpu.value();
    profiler->machine_state().describe(gpu);
    double cycles = 0, us = 0;
    const PointFacts facts = make_facts(point, {});
    for (std::size_t s = 0; s < point.steps.size(); ++s) {
        const double mhz = facts.steps[s].clock_mhz.value;
        if (gpu.max_sm_clock_mhz.value) {
            EXPECT_LT(clock.step_mhz[s], *gpu.max_sm_clock_mhz.value * 1.01) << point.steps[s].layer;
        }
        if (point.steps[s].op != "gemm") continue;
        EXPECT_GT(mhz, 400) << point.steps[s].layer << ": of its name at least";
        cycles += mhz * facts.steps[s].time_us;
        us += facts.steps[s].time_us;
    }
    const double nvml = point.conditions.sm_clock_mhz.value.value_or(0);
    fmt::print("GEMMs {:.0f} MHz in the graph, NVML {:.0f} MHz; {} places in {} graphs, {:.2f} us each\n", cycles / us,
               nvml, clock.places, clock.graphs, clock.cost_us);
    if (nvml > 0) {
        EXPECT_NEAR(cycles / us / nvml, 1, 0.25);
    }
    EXPECT_GT(clock.cost_us, 0);
    EXPECT_LT(clock.cost_us, 10);
}

}  // namespace
}  // namespace kbench
