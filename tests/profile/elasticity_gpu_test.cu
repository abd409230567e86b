// Parts of a GPU: kernels stay on their SMs, and time against SMs tells what SMs bind from what they do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "analysis/explain/elasticity.h"
#include "bench/device/device.h"
#include "bench/device/multiprocessors.h"
#include "bench/profile/profiler.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/probe/fma.h"
#include "kernels/probe/memory.h"

namespace kbench {
namespace {

__global__ void write_sm_ids(unsigned* ids) {
    unsigned id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    // Long enough that no SM could take the blocks of others.
    const long long begin = clock64();
    while (clock64() - begin < 20000) {
    }
    if (threadIdx.x == 0) ids[blockIdx.x] = id;
}

constexpr int id_blocks = 4096;

/// On how many SMs a launch of many blocks runs.
int distinct_sms(Device& device, bool in_graph) {
    const DeviceBuffer ids(device, id_blocks * sizeof(unsigned));
    const auto enqueue = [&] {
        write_sm_ids<<<id_blocks, 64, 0, static_cast<cudaStream_t>(device.stream())>>>(
            reinterpret_cast<unsigned*>(ids.data()));
        KBENCH_CUDA_LAUNCHED("write_sm_ids");
    };
    enqueue();
    if (in_graph) {
        device.fill(ids.data(), 0, ids.bytes());
        device.synchronize();
        const std::unique_ptr<DeviceGraph> graph = device.capture(enqueue);
        graph->launch();
        device.synchronize();
    }
    std::vector<unsigned> host(id_blocks);
    device.download(host.data(), ids.data(), ids.bytes());
    std::sort(host.begin(), host.end());
    return static_cast<int>(std::unique(host.begin(), host.end()) - host.begin());
}

/// Other tests of this program profile; parts are made before any does.
class PartsFirst : public testing::Environment {
    void SetUp() override {
        if (cuda_unavailable().empty()) keep_parts(*make_cuda_device());
    }
};
[[maybe_unused]] const testing::Environment* const parts_first = testing::AddGlobalTestEnvironment(new PartsFirst);

class GpuParts : public testing::Test {
  protected:
    void SetUp() override {
        if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
        device_ = make_cuda_device();
        try {
            counts_ = counts_at_shares(possible_multiprocessors(*device_));
        } catch (const DeviceError& error) {
            GTEST_SKIP() << error.what();
        }
        if (counts_.size() < 4) GTEST_SKIP() << "this GPU has too few SMs to be divided in four";
    }

    /// Two steps on every number of SMs, as a forward is measured.
    Point measured(const std::vector<std::pair<std::string, std::function<void(cudaStream_t)>>>& steps) {
        Point point;
        for (const auto& [name, enqueue] : steps) {
            StepResult& step = point.steps.emplace_back();
            step.op = step.layer = name;
        }
        SmScaling& scaling = point.sm_scaling.emplace();
        for (const int count : counts_) {
            const std::unique_ptr<Device> part = make_cuda_device(count);
            const std::unique_ptr<Profiler> profiler = make_profiler(*part);
            auto* const stream = static_cast<cudaStream_t>(part->stream());
            std::vector<WorkRange> ranges;
            for (const auto& [name, enqueue] : steps)
                ranges.push_back({.group = "", .name = name, .enqueue = [&enqueue, stream] { enqueue(stream); }});
            for (const WorkRange& range : ranges) range.enqueue();
            part->synchronize();
            profiler->watch(ranges);
            const std::unique_ptr<DeviceGraph> graph = part->capture([&] {
                for (const WorkRange& range : ranges) range.enqueue();
            });
            const RangeTimes times = profiler->time_ranges(*graph, 0.3);
            SmCountRun& run = scaling.runs.emplace_back();
            run.multiprocessors = count;
            run.sm_clock_mhz = times.sm_clock_mhz;
            for (const Summary& us : times.us) {
                run.step_us.push_back(us.median);
                run.step_low_us.push_back(us.ci_low);
                run.step_high_us.push_back(us.ci_high);
            }
        }
        return point;
    }

    std::unique_ptr<Device> device_;
    std::vector<int> counts_;
};

TEST_F(GpuParts, KernelsStayOnTheirSmsAlsoInAGraph) {
    const int all = device_->info().gpu->multiprocessors;
    for (const bool in_graph : {false, true}) EXPECT_EQ(distinct_sms(*device_, in_graph), all);
    for (const int count : counts_) {
        const std::unique_ptr<Device> part = make_cuda_device(count);
        EXPECT_EQ(part->info().gpu->multiprocessors, count);
        if (count < all) {
            EXPECT_EQ(part->info().gpu->multiprocessors_of_device, all);
        }
        for (const bool in_graph : {false, true}) EXPECT_EQ(distinct_sms(*part, in_graph), count) << in_graph;
    }
    EXPECT_EQ(distinct_sms(*device_, true), all) << "and the device is whole again";
}

TEST_F(GpuParts, ANumberThatCannotBeHadIsRefusedWithThosePossible) {
    const std::vector<int> possible = possible_multiprocessors(*device_);
    EXPECT_EQ(possible.back(), device_->info().gpu->multiprocessors);
    for (const int wrong : {-1, 1, possible.back() + 1, possible.back() - 1}) {
        if (std::find(possible.begin(), possible.end(), wrong) != possible.end()) continue;
        try {
            make_cuda_device(wrong);
            ADD_FAILURE() << wrong << " SMs";
        } catch (const UsageError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("this GPU can be taken as " + counts_text(possible)));
        }
    }
}

TEST_F(GpuParts, CountersSayThatTheyCountTheWholeDevice) {
    const std::unique_ptr<Device> part = make_cuda_device(counts_[1]);
    const std::unique_ptr<Profiler> profiler = make_profiler(*part);
    profiler->watch({});
    EXPECT_THROW(profiler->count({.sets = {"core"}, .metrics = {}, .required = false}), DeviceError);
    EXPECT_THROW(profiler->check({.sets = {"core"}, .metrics = {}, .required = true}), UsageError);
    EXPECT_NO_THROW(profiler->check({.sets = {"core"}, .metrics = {}, .required = false}));
}

TEST_F(GpuParts, FmaSlowsDownInProportionAndACopyDoesNot) {
    const int all = device_->info().gpu->multiprocessors;
    // Many short blocks, so that a wave more or less is nothing.
    const int blocks = 960 * all;
    constexpr std::int64_t bytes = std::int64_t{1} << 30;
    const DeviceBuffer out(*device_, sizeof(float) * static_cast<std::size_t>(blocks) * cuda::probe::fma_threads);
    const DeviceBuffer to(*device_, bytes), from(*device_, bytes);
    device_->fill(from.data(), 0x3f, bytes);
    device_->synchronize();
    const Point point =
        measured({{"fma",
                   [&](cudaStream_t stream) {
                       cuda::probe::fma_chains(DataType::fp32, 8, blocks, 4, out.data(), nullptr, stream);
                   }},
                  {"copy", [&](cudaStream_t stream) {
                       const cuda::probe::MemoryBuffers buffers{.a = to.data(), .b = from.data(), .bytes = bytes};
                       // A block a chunk: none waits for the blocks of a second wave.
                       cuda::probe::stream_memory(cuda::probe::Traffic::copy, {.blocks_per_sm = 0}, buffers, 0, all,
                                                  nullptr, stream);
                   }}});
    const SmElasticity elasticity = sm_elasticity(make_facts(point, {}));
    ASSERT_EQ(elasticity.unavailable, "");
    ASSERT_EQ(elasticity.steps.size(), 2u);
    const SmGroup &fma = elasticity.steps[0], &copy = elasticity.steps[1];
    for (const SmEffect& effect : fma.effects) {
        EXPECT_GT(effect.at_equal_clocks.value, 0.9) << effect.multiprocessors;
        EXPECT_LT(effect.at_equal_clocks.value, 1.1) << effect.multiprocessors;
    }
    EXPECT_EQ(fma.finding, SmFinding::binds) << sentence(fma, all);
    EXPECT_LT(copy.effects[0].as_timed.value, 0.2) << sentence(copy, all);
    EXPECT_EQ(copy.finding, SmFinding::does_not_bind) << sentence(copy, all);
}

}  // namespace
}  // namespace kbench
