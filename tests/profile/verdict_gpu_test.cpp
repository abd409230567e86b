// Real kernels of known nature, measured as a run measures and set against the roofs of the same GPU, get the verdict
// that they were written for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "bench/device/device.h"
#include "kernels/probe/fma.h"
#include "kernels/probe/latency.h"
#include "kernels/probe/memory.h"
#include "kernels/probe/mma.h"
#include "tests/profile/known_kernels.h"
#include "tests/profile/known_steps.h"

namespace kbench {
namespace {

class GpuVerdict : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (!cuda_unavailable().empty()) return;
        device_ = make_cuda_device();
        known_ = std::make_unique<KnownSteps>(*device_, measured_roofs(*device_, 2));
    }
    static void TearDownTestSuite() {
        known_.reset();
        device_.reset();
    }
    void SetUp() override {
        if (!device_) GTEST_SKIP() << cuda_unavailable();
    }

    static Device& device() { return *device_; }
    static cudaStream_t stream() { return static_cast<cudaStream_t>(device_->stream()); }
    static int multiprocessors() { return device_->info().gpu.value().multiprocessors; }

    /// False where this machine has no counters: `measured_.unavailable` says so.
    bool measure(const std::vector<KnownStep>& steps, double time_budget_s = test_budget().sampler.time_budget_s) {
        KnownBudget budget = test_budget();
        budget.sampler.time_budget_s = time_budget_s;
        measured_ = known_->measure(steps, budget);
        return measured_.unavailable.empty();
    }
    const Explanation& explained() const { return measured_.explained; }

    void expect(Bound bound, std::size_t step = 0) const {
        EXPECT_EQ(name(explained().verdicts.steps[step].bound), name(bound)) << account(explained(), step);
        EXPECT_EQ(name(explained().verdicts.model.bound), name(bound)) << account(explained(), step);
    }

  private:
    static inline std::unique_ptr<Device> device_;
    static inline std::unique_ptr<KnownSteps> known_;
    KnownResult measured_;

  protected:
    const std::string& why_not() const { return measured_.unavailable; }
};

#define MEASURE_OR_SKIP(...) \
    if (!measure(__VA_ARGS__)) GTEST_SKIP() << why_not()

template <class T>
T* as(const DeviceBuffer& buffer) {
    return reinterpret_cast<T*>(buffer.data());
}

TEST_F(GpuVerdict, ABigCopyIsBandwidthBound) {
    constexpr std::int64_t bytes = std::int64_t{1} << 30;
    const DeviceBuffer to(device(), bytes), from(device(), bytes);
    device().fill(from.data(), 0x3f, bytes);
    const auto copy = [&] {
        const cuda::probe::MemoryBuffers buffers{.a = to.data(), .b = from.data(), .bytes = bytes};
        cuda::probe::stream_memory(cuda::probe::Traffic::copy, {}, buffers, 0, multiprocessors(), nullptr, stream());
    };
    MEASURE_OR_SKIP({{"copy", 0, 2.0 * bytes, copy}});
    expect(Bound::bandwidth);
    EXPECT_EQ(explained().verdicts.steps[0].level, "DRAM") << account(explained(), 0);
    EXPECT_LT(explained().roof_times[0].binding_share(explained().facts.steps[0].time_us), 1.02)
        << account(explained(), 0);
}

TEST_F(GpuVerdict, RegisterResidentFmaIsComputeBound) {
    constexpr int chains = 8, iterations = 1000;
    const int blocks = 8 * multiprocessors();
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks * cuda::probe::fma_threads));
    const auto fma = [&] {
        cuda::probe::fma_chains(DataType::fp32, chains, blocks, iterations, out.data(), nullptr, stream());
    };
    MEASURE_OR_SKIP({{"fma", cuda::probe::fma_flops(DataType::fp32, chains, blocks) * iterations, 0, fma}});
    expect(Bound::compute);
    EXPECT_EQ(explained().verdicts.steps[0].level, "fp32_plain") << account(explained(), 0);
    EXPECT_LT(explained().roof_times[0].binding_share(explained().facts.steps[0].time_us), 1.02)
        << account(explained(), 0);
}

TEST_F(GpuVerdict, AThousandEmptyKernelsAreLaunchBound) {
    std::vector<KnownStep> steps;
    for (int k = 0; k < 1000; ++k)
        steps.push_back({fmt::format("empty.{}", k), 0, 0, [] { cuda::probe::empty(stream()); }});
    MEASURE_OR_SKIP(steps, 8);  // in 2 s too few of its samples were independent once, behind other tests
    std::size_t others = 0;
    std::string told;
    for (std::size_t k = 0; k < steps.size(); ++k) {
        const Verdict& verdict = explained().verdicts.steps[k];
        if (verdict.bound == Bound::launch) continue;
        const StepFacts& facts = explained().facts.steps[k];
        told += fmt::format("{}: {} by {}, {:.2f} us of {:.2f}, gap {:.2f}, start {:.2f}, recording {:.2f}\n",
                            verdict.subject, name(verdict.bound), verdict.rule, facts.device_us.value, facts.kernels_us,
                            facts.gap_before_us, facts.start_and_end_us, facts.recording_us);
        ++others;
    }
    EXPECT_LE(others, 10) << told << account(explained(), 500);
    expect(Bound::launch, 500);
}

TEST_F(GpuVerdict, OneWavePlusOneBlockIsOccupancyLimited) {
    constexpr int iterations = 1000;
    const int blocks = multiprocessors() + 1;
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks) * cuda::known::fma_block_threads);
    const auto fma = [&] { cuda::known::fma_blocks(blocks, iterations, as<float>(out), stream()); };
    MEASURE_OR_SKIP({{"wave.plus.one", cuda::known::fma_block_flops(blocks, iterations), 0, fma}});
    expect(Bound::occupancy);
    EXPECT_EQ(explained().verdicts.steps[0].rule, "idle-sms") << account(explained(), 0);
    // All SMs but one are idle for the second half.
    EXPECT_NEAR(explained().cycles.steps[0].no_warp, 0.5, 0.06) << account(explained(), 0);
}

TEST_F(GpuVerdict, ASingleBlockIsOccupancyLimited) {
    constexpr int iterations = 1000;
    const DeviceBuffer out(device(), sizeof(float) * cuda::known::fma_block_threads);
    const auto fma = [&] { cuda::known::fma_blocks(1, iterations, as<float>(out), stream()); };
    MEASURE_OR_SKIP({{"one.block", cuda::known::fma_block_flops(1, iterations), 0, fma}});
    expect(Bound::occupancy);
    EXPECT_EQ(explained().verdicts.steps[0].rule, "idle-sms") << account(explained(), 0);
}

TEST_F(GpuVerdict, FmaOnHalfTheSmsIsOccupancyLimited) {
    constexpr int iterations = 1000;
    const int blocks = multiprocessors() / 2;
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks) * cuda::known::fma_block_threads);
    const auto fma = [&] { cuda::known::fma_blocks(blocks, iterations, as<float>(out), stream()); };
    MEASURE_OR_SKIP({{"half", cuda::known::fma_block_flops(blocks, iterations), 0, fma}});
    expect(Bound::occupancy);
    const CycleAccount& cycles = explained().cycles.steps[0];
    EXPECT_NEAR(cycles.no_warp, 0.5, 0.05) << account(explained(), 0);
    EXPECT_NEAR(cycles.issuing, 0.5, 0.05) << account(explained(), 0);  // an FMA a cycle, of each scheduler with work
}

/// Few warps, that wait nearly always: for the tensor pipe, which has no time for more.
TEST_F(GpuVerdict, MmaAtThePipesPaceIsComputeBoundAndNotOccupancyLimited) {
    using cuda::probe::Mma;
    if (const char* why = cuda::probe::mma_unsupported(Mma::fp16_16x8x16); *why != '\0') GTEST_SKIP() << why;
    const int blocks = multiprocessors();
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks * cuda::probe::mma_threads));
    const auto mma = [&] { cuda::probe::mma_chains(Mma::fp16_16x8x16, 8, blocks, 500, out.data(), nullptr, stream()); };
    MEASURE_OR_SKIP({{"mma", 0, 0, mma}});
    expect(Bound::compute);
    EXPECT_EQ(explained().verdicts.steps[0].level, "tensor pipe") << account(explained(), 0);
    EXPECT_LT(explained().facts.steps[0].counters.achieved_occupancy.value(), 30) << account(explained(), 0);
}

TEST_F(GpuVerdict, SharedMemoryIsAMemoryThatBinds) {
    for (const int ways : {1, 2, 8}) {
        const int blocks = 8 * multiprocessors();
        const DeviceBuffer out(device(),
                               sizeof(std::uint32_t) * static_cast<std::size_t>(blocks) * cuda::known::unit_threads);
        const auto read = [&] {
            cuda::known::bank_conflicts(ways, blocks, 2000 / ways, as<std::uint32_t>(out), stream());
        };
        MEASURE_OR_SKIP({{"shared", 0, 0, read}});
        const Verdict& verdict = explained().verdicts.steps[0];
        if (ways == 1) {  // without conflicts the load-store unit is as busy, and nobody can tell which of them binds
            EXPECT_EQ(verdict.bound, Bound::not_identifiable) << account(explained(), 0);
            continue;
        }
        expect(Bound::bandwidth);
        EXPECT_EQ(verdict.level, "shared memory") << account(explained(), 0);
    }
}

TEST_F(GpuVerdict, SpecialFunctionsBindLikeAnyUnit) {
    const int blocks = 8 * multiprocessors();
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks) * cuda::known::unit_threads);
    const auto powers = [&] { cuda::known::special_functions(blocks, 200, as<float>(out), stream()); };
    MEASURE_OR_SKIP({{"ex2", 0, 0, powers}});
    expect(Bound::compute);
    EXPECT_EQ(explained().verdicts.steps[0].level, "special-function unit") << account(explained(), 0);
}

TEST_F(GpuVerdict, APointerChaseAtFullOccupancyIsLatencyBound) {
    constexpr std::uint32_t nodes = 1u << 23;  // 512 MiB, past every L2
    constexpr int loads = 1000;
    const DeviceBuffer chain(device(), std::size_t{nodes} * cuda::known::chase_stride_bytes);
    const auto warps = static_cast<std::size_t>(cuda::known::chase_warps());
    const DeviceBuffer out(device(), sizeof(std::uint32_t) * warps);
    cuda::known::make_chase(as<std::uint32_t>(chain), nodes, stream());
    const auto chase = [&] {
        cuda::known::chase(as<std::uint32_t>(chain), nodes, loads, as<std::uint32_t>(out), stream());
    };
    MEASURE_OR_SKIP({{"chase", 0, static_cast<double>(warps) * loads * sizeof(std::uint32_t), chase}});
    expect(Bound::latency);
    EXPECT_GT(explained().facts.steps[0].counters.achieved_occupancy.value(), 80) << account(explained(), 0);
    const CycleAccount& cycles = explained().cycles.steps[0];
    ASSERT_FALSE(cycles.lost.empty()) << cycles.not_split;
    EXPECT_EQ(cycles.lost[0].reason, "long_scoreboard") << account(explained(), 0);
    EXPECT_GT(cycles.lost[0].low, 0.9 * cycles.not_issuing) << account(explained(), 0);
}

}  // namespace
}  // namespace kbench
