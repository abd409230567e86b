// Each of a machine's GPUs as the device that is chosen: CUDA, its profiler and NVML must all mean the same one.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "bench/command/device_options.h"
#include "bench/device/device.h"
#include "bench/device/gpu_code.h"
#include "bench/profile/profiler.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/spin.h"
#include "tests/profile/known_kernels.h"

namespace kbench {
namespace {

using testing::SizeIs;

class ChosenGpu : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
        KBENCH_CUDA(cudaGetDevice(&before_));
        gpus_ = visible_gpus();
    }
    void TearDown() override {
        if (!gpus_.empty()) KBENCH_CUDA(cudaSetDevice(before_));  // other tests of this program have theirs
    }
    int count() const { return static_cast<int>(gpus_.size()); }
    static int current() {
        int device = 0;
        KBENCH_CUDA(cudaGetDevice(&device));
        return device;
    }
    int before_ = 0;
    std::vector<GpuInfo> gpus_;
};

TEST_F(ChosenGpu, IsOneOfThoseThatAreListed) {
    std::set<std::string> uuids;
    for (const GpuInfo& gpu : gpus_) uuids.insert(gpu.uuid);
    EXPECT_THAT(uuids, SizeIs(gpus_.size()));
    for (int ordinal = 0; ordinal < count(); ++ordinal) {
        const std::string& uuid = gpus_[static_cast<std::size_t>(ordinal)].uuid;
        EXPECT_EQ(gpu_named(uuid, gpus_), ordinal);
        std::string remark;
        const DeviceList chosen = choose_devices({.gpu = uuid}, remark);
        EXPECT_EQ(chosen.front()->info().ordinal, ordinal);
        EXPECT_EQ(chosen.front()->info().gpu->uuid, uuid);
        EXPECT_EQ(current(), ordinal);
        EXPECT_EQ(make_cuda_device()->info().ordinal, ordinal) << "who asks for no GPU takes the one that is chosen";
    }
    EXPECT_THROW(gpu_named(std::to_string(count()), gpus_), UsageError);
}

TEST_F(ChosenGpu, BelongsToTheThreadThatMadeIt) {
    std::thread([this] {
        const std::unique_ptr<Device> device = make_cuda_device(0, count() - 1);
        EXPECT_EQ(current(), count() - 1);
        DeviceBuffer(*device, 256);
    }).join();
    EXPECT_EQ(current(), before_);
}

TEST_F(ChosenGpu, RunsCodeOfThisBuild) {
    for (int ordinal = 0; ordinal < count(); ++ordinal) {
        const GpuInfo& gpu = gpus_[static_cast<std::size_t>(ordinal)];
        EXPECT_TRUE(
            code_for(built_architectures(), gpu.compute_capability_major, gpu.compute_capability_minor).has_value());
        KBENCH_CUDA(cudaSetDevice(ordinal));
        EXPECT_EQ(cuda::load_spin(), cudaSuccess);
    }
}

TEST_F(ChosenGpu, IsTheOneThatRecordsCountersAndNvmlAreOf) {
    for (int ordinal = 0; ordinal < count(); ++ordinal) {
        const std::unique_ptr<Device> device = make_cuda_device(0, ordinal);
        const std::unique_ptr<Profiler> profiler = make_profiler(*device);
        GpuInfo described = device->info().gpu.value();
        profiler->machine_state().describe(described);
        EXPECT_NE(described.driver, "");
        EXPECT_TRUE(described.max_sm_clock_mhz.value) << described.max_sm_clock_mhz.reason;

        const DeviceBuffer out(*device, sizeof(float) * 64 * cuda::known::fma_block_threads);
        auto* const stream = static_cast<cudaStream_t>(device->stream());
        const WorkRange range{.group = "fma", .name = "fma", .enqueue = [&] {
                                  cuda::known::fma_blocks(64, 1000, reinterpret_cast<float*>(out.data()), stream);
                              }};
        enqueue(range);
        device->synchronize();
        profiler->watch({range});
        const std::unique_ptr<DeviceGraph> graph = device->capture([&] { enqueue(range); });
        const RangeKernels recorded = profiler->record_kernels(*graph, 2, 0);
        ASSERT_EQ(recorded.run.unavailable, "");
        ASSERT_THAT(recorded.by_range, SizeIs(1));
        ASSERT_THAT(recorded.by_range.front(), SizeIs(1));
        EXPECT_EQ(recorded.by_range.front().front().device, ordinal);
        for (const auto& [what, found] : profiler->probe_counters()) EXPECT_TRUE(found.value) << what << found.reason;
    }
}

}  // namespace
}  // namespace kbench
