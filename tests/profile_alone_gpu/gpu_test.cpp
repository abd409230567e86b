// The profiler as a library of its own, on a GPU: two kernels of a program that knows nothing else of kbench are
// recorded and counted. This program links kbench_profile alone.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/profile/profiler.h"
#include "kbench/error.h"
#include "tests/profile/known_kernels.h"

namespace kbench {
namespace {

using testing::HasSubstr;

class ProfileAlone : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
        device_ = make_cuda_device();
        profiler_ = make_profiler(*device_);
        out_ = DeviceBuffer(*device_, sizeof(float) * blocks * cuda::known::fma_block_threads);
        auto* const out = reinterpret_cast<float*>(out_.data());
        auto* const stream = static_cast<cudaStream_t>(device_->stream());
        ranges_ = {{.group = "fma", .name = "short", .enqueue = [=] { fma(100, out, stream); }},
                   {.group = "fma", .name = "long", .enqueue = [=] { fma(1000, out, stream); }}};
        enqueue_all();  // loads the kernel
        device_->synchronize();
        profiler_->watch(ranges_);
    }
    void TearDown() override {
        out_ = {};
        profiler_.reset();
    }
    void enqueue_all() const {
        for (const WorkRange& range : ranges_) enqueue(range);
    }
    static void fma(int iterations, float* out, cudaStream_t stream) {
        cuda::known::fma_blocks(blocks, iterations, out, stream);
    }

    static constexpr int blocks = 64;
    std::unique_ptr<Device> device_;
    std::unique_ptr<Profiler> profiler_;
    DeviceBuffer out_;
    std::vector<WorkRange> ranges_;
};

TEST_F(ProfileAlone, RecordsTwoKernels) {
    const std::unique_ptr<DeviceGraph> graph = device_->capture([this] { enqueue_all(); });
    const double alone_ms = last_launch_ms(*device_, *graph, 3);
    const RangeKernels kernels = profiler_->record_kernels(*graph, 3, 0.01);
    ASSERT_EQ(kernels.by_range.size(), 2u);
    for (const std::vector<KernelResult>& range : kernels.by_range) {
        ASSERT_EQ(range.size(), 1u);
        EXPECT_THAT(range[0].name, HasSubstr("fma"));
        EXPECT_EQ(range[0].grid[0], blocks);
        EXPECT_EQ(range[0].block[0], cuda::known::fma_block_threads);
    }
    EXPECT_GT(kernels.by_range[1][0].time_us, 2 * kernels.by_range[0][0].time_us);
    EXPECT_LT(kernels.run.kernels_ms, 2 * alone_ms);
}

/// A fill of memory is a node of the graph and no kernel: behind one, kernels still belong to their own range.
TEST_F(ProfileAlone, RecordsKernelsBehindAFill) {
    const auto fill = [out = out_.data(), stream = static_cast<cudaStream_t>(device_->stream())](int times) {
        for (int i = 0; i < times; ++i) ASSERT_EQ(cudaMemsetAsync(out, i, sizeof(float), stream), cudaSuccess);
    };
    for (const std::size_t filled : {0u, 1u}) {
        std::vector<WorkRange> ranges = ranges_;
        ranges[filled].enqueue = [=, kernel = ranges_[filled].enqueue] {
            fill(2);
            kernel();
        };
        profiler_->watch(ranges);
        const std::unique_ptr<DeviceGraph> graph = device_->capture([&] {
            for (const WorkRange& range : ranges) enqueue(range);
        });
        const RangeKernels kernels = profiler_->record_kernels(*graph, 3, 0.01);
        ASSERT_EQ(kernels.by_range.size(), 2u) << filled;
        for (const std::vector<KernelResult>& range : kernels.by_range) {
            ASSERT_FALSE(range.empty()) << filled;
            EXPECT_THAT(range.back().name, HasSubstr("fma")) << filled;
        }
        EXPECT_GT(kernels.by_range[1].back().time_us, 2 * kernels.by_range[0].back().time_us) << filled;
    }
}

TEST_F(ProfileAlone, CountsTwoKernels) {
    RangeCounters counters;
    try {
        counters = profiler_->count({.sets = {"sass"}, .metrics = {}, .required = true});
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    ASSERT_EQ(counters.by_range.size(), 2u);
    EXPECT_THAT(counters.discarded, testing::Each(""));
    EXPECT_GT(counters.by_range[1].at("sass_ffma"), 5 * counters.by_range[0].at("sass_ffma"));
}

/// CUPTI numbers kernels as it meets them: one that nobody captured would give its counts to another range.
TEST_F(ProfileAlone, WhereKernelsAreNotThoseCapturedRangesAreCountedByCall) {
    const auto kernel = ranges_[0].enqueue;
    auto* const stream = static_cast<cudaStream_t>(device_->stream());
    ranges_[0].enqueue = [=] {
        kernel();
        cudaStreamCaptureStatus status{};
        ASSERT_EQ(cudaStreamIsCapturing(stream, &status), cudaSuccess);
        if (status == cudaStreamCaptureStatusNone) kernel();
    };
    profiler_->watch(ranges_);
    RangeCounters counters;
    try {
        counters = profiler_->count({.sets = {"sass"}, .metrics = {}, .required = true});
    } catch (const DeviceError& error) {
        GTEST_SKIP() << error.what();
    }
    EXPECT_THAT(counters.warning, HasSubstr("by call"));
    ASSERT_EQ(counters.by_range.size(), 2u);
    // Two of 100 iterations beside one of 1000.
    EXPECT_NEAR(counters.by_range[1].at("sass_ffma") / counters.by_range[0].at("sass_ffma"), 5, 0.5);
}

}  // namespace
}  // namespace kbench
