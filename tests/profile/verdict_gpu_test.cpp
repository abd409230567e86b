// Real kernels of known nature, measured as a run measures and set against the roofs of the same GPU, get the verdict
// that they were written for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/explain/explain.h"
#include "bench/device/device.h"
#include "bench/measure/machine/ceilings.h"
#include "bench/measure/sampler.h"
#include "bench/profile/condition_sampler.h"
#include "bench/profile/profiler.h"
#include "kbench/error.h"
#include "kbench/statistics.h"
#include "kernels/probe/fma.h"
#include "kernels/probe/latency.h"
#include "kernels/probe/memory.h"
#include "kernels/probe/mma.h"
#include "tests/profile/known_kernels.h"

namespace kbench {
namespace {

/// A step of a forward that is no model's.
struct KnownStep {
    std::string layer;
    double flops = 0, bytes = 0;  ///< FLOPs are fp32's
    std::function<void(cudaStream_t)> enqueue;
};

/// Every line of the ledger, and of one step with its evidence.
std::string account(const Explanation& explained, std::size_t step) {
    const Ledger& ledger = explained.ledger;
    const Verdict& verdict = explained.verdicts.steps[step];
    std::string text = fmt::format("end to end {:.1f} us; model: {} by {}; step {}: {} by {}\n", ledger.end_to_end_us,
                                   name(explained.verdicts.model.bound), explained.verdicts.model.rule, verdict.subject,
                                   name(verdict.bound), verdict.rule);
    for (std::size_t i = 0; i < line_count; ++i)
        text += fmt::format("  {:12} {:12.2f} us of all {:12.2f} us of the step\n", info(line_at(i)).name,
                            ledger.total[line_at(i)], ledger.steps[step].lines[line_at(i)]);
    for (const std::string& evidence : verdict.evidence) text += "  " + evidence + "\n";
    for (const Hypothesis& hypothesis : verdict.hypotheses)
        text += fmt::format("  {} {}: {}\n", name(hypothesis.bound), name(hypothesis.finding), hypothesis.why);
    const CycleAccount& cycles = explained.cycles.steps[step];
    text += fmt::format("  no warp {:.3f}, issuing {:.3f}, not issuing {:.3f} {}\n", cycles.no_warp, cycles.issuing,
                        cycles.not_issuing, cycles.not_split);
    for (const LostCycles& lost : cycles.lost)
        text += fmt::format("  {} {:.3f} [{:.3f}, {:.3f}]\n", lost.reason, lost.share, lost.low, lost.high);
    for (const auto& [counter, value] : ledger.steps[step].step->counters)
        text += fmt::format("  {} = {:.6g}\n", counter, value);
    return text;
}

class GpuVerdict : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (!cuda_unavailable().empty()) return;
        device_ = make_cuda_device();
        profiler_ = make_profiler(*device_);
        roofs_.device = device_->info().gpu.value().name;
        roofs_.ceilings = measure_ceilings(*device_, 2);
    }
    static void TearDownTestSuite() {
        profiler_.reset();
        device_.reset();
    }
    void SetUp() override {
        if (!device_) GTEST_SKIP() << cuda_unavailable();
    }

    static cudaStream_t stream() { return static_cast<cudaStream_t>(device_->stream()); }
    static int multiprocessors() { return device_->info().gpu.value().multiprocessors; }

    /// Times, records and counts `steps`, and explains them. False where this machine has no counters: `why_` says so.
    bool measure(const std::vector<KnownStep>& steps) {
        result_.ceilings = roofs_;
        Point& point = result_.points.emplace_back();
        point.set("model", "known kernels");
        point.set("backend", "cuda");
        point.status = PointStatus::done;
        const auto enqueue_all = [&] {
            for (const KnownStep& step : steps) step.enqueue(stream());
        };
        enqueue_all();
        device_->synchronize();
        std::vector<WorkRange> ranges;
        for (const KnownStep& step : steps) {
            ranges.push_back({.group = "", .name = step.layer, .enqueue = [&] { step.enqueue(stream()); }});
            StepResult& result = point.steps.emplace_back();
            result.index = static_cast<int>(point.steps.size()) - 1;
            result.layer = step.layer;
            result.op = "known";
            result.cost.flops = step.flops;
            result.cost.bytes_read[static_cast<std::size_t>(Role::activations)] = step.bytes;
        }
        profiler_->watch(ranges);
        const std::unique_ptr<DeviceGraph> forward = device_->capture(enqueue_all);
        time(point, *forward);
        try {
            RangeKernels kernels = profiler_->record_kernels(*forward, 5, 0.1);
            point.activity = kernels.run;
            for (std::size_t s = 0; s < steps.size(); ++s) point.steps[s].kernels = kernels.by_range[s];
            RangeCounters counters =
                profiler_->count({.sets = {"core", "stalls", "pipes"}, .metrics = {}, .required = false});
            if (!counters.warning.empty()) throw DeviceError(counters.warning);  // each known step is one kernel
            point.counters = counters.run;
            for (std::size_t s = 0; s < steps.size(); ++s) point.steps[s].counters = counters.by_range[s];
        } catch (const DeviceError& error) {
            why_ = error.what();
            return false;
        }
        explained_ = explain(result_, point);
        return true;
    }

    void expect(Bound bound, std::size_t step = 0) const {
        EXPECT_EQ(name(explained_.verdicts.steps[step].bound), name(bound)) << account(explained_, step);
        EXPECT_EQ(name(explained_.verdicts.model.bound), name(bound)) << account(explained_, step);
    }

    Result result_;
    Explanation explained_;
    std::string why_;

  private:
    static void time(Point& point, DeviceGraph& forward) {
        constexpr std::size_t runs = 6;
        std::vector<std::unique_ptr<DeviceEvent>> events;
        for (std::size_t r = 0; r <= runs; ++r) events.push_back(device_->make_event());
        const auto chunk = [&] {
            for (std::size_t r = 0; r < runs; ++r) {
                events[r]->record();
                forward.launch();
            }
            events[runs]->record();
            device_->synchronize();
            std::vector<double> times;
            for (std::size_t r = 1; r < runs; ++r) times.push_back(events[r + 1]->ms_since(*events[r]));
            return times;
        };
        ConditionSampler conditions(profiler_->machine_state());
        SamplerOptions options;
        options.time_budget_s = 2;
        options.warm_up_s = 0.3;
        options.min_time_s = 0.5;
        conditions.start();
        point.end_to_end.emplace();
        point.end_to_end->latency = sample(chunk, options, [] { return false; }).timing;
        point.conditions = conditions.stop();
    }

    static inline std::unique_ptr<Device> device_;
    static inline std::unique_ptr<Profiler> profiler_;
    static inline CeilingRun roofs_;

  protected:
    static Device& device() { return *device_; }
};

#define MEASURE_OR_SKIP(...) \
    if (!measure(__VA_ARGS__)) GTEST_SKIP() << why_

template <class T>
T* as(const DeviceBuffer& buffer) {
    return reinterpret_cast<T*>(buffer.data());
}

TEST_F(GpuVerdict, ABigCopyIsBandwidthBound) {
    constexpr std::int64_t bytes = std::int64_t{1} << 30;
    const DeviceBuffer to(device(), bytes), from(device(), bytes);
    device().fill(from.data(), 0x3f, bytes);
    const auto copy = [&](cudaStream_t stream) {
        const cuda::probe::MemoryBuffers buffers{.a = to.data(), .b = from.data(), .bytes = bytes};
        cuda::probe::stream_memory(cuda::probe::Traffic::copy, {}, buffers, 0, multiprocessors(), nullptr, stream);
    };
    MEASURE_OR_SKIP({{"copy", 0, 2.0 * bytes, copy}});
    expect(Bound::bandwidth);
    EXPECT_EQ(explained_.verdicts.steps[0].level, "DRAM") << account(explained_, 0);
    EXPECT_LT(explained_.ledger.steps[0].roof_share(), 1.02) << account(explained_, 0);
}

TEST_F(GpuVerdict, RegisterResidentFmaIsComputeBound) {
    constexpr int chains = 8, iterations = 1000;
    const int blocks = 8 * multiprocessors();
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks * cuda::probe::fma_threads));
    const auto fma = [&](cudaStream_t stream) {
        cuda::probe::fma_chains(DataType::fp32, chains, blocks, iterations, out.data(), nullptr, stream);
    };
    MEASURE_OR_SKIP({{"fma", cuda::probe::fma_flops(DataType::fp32, chains, blocks) * iterations, 0, fma}});
    expect(Bound::compute);
    EXPECT_EQ(explained_.verdicts.steps[0].level, "fp32_plain") << account(explained_, 0);
    EXPECT_LT(explained_.ledger.steps[0].roof_share(), 1.02) << account(explained_, 0);
}

TEST_F(GpuVerdict, AThousandEmptyKernelsAreLaunchBound) {
    std::vector<KnownStep> steps;
    for (int k = 0; k < 1000; ++k)
        steps.push_back({fmt::format("empty.{}", k), 0, 0, [](cudaStream_t stream) { cuda::probe::empty(stream); }});
    MEASURE_OR_SKIP(steps);
    std::size_t launch_bound = 0;
    for (const Verdict& verdict : explained_.verdicts.steps) launch_bound += verdict.bound == Bound::launch;
    EXPECT_GE(launch_bound, 990) << account(explained_, 500);
    expect(Bound::launch, 500);
}

TEST_F(GpuVerdict, OneWavePlusOneBlockIsOccupancyLimited) {
    constexpr int iterations = 1000;
    const int blocks = multiprocessors() + 1;
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks) * cuda::known::fma_block_threads);
    const auto fma = [&](cudaStream_t stream) { cuda::known::fma_blocks(blocks, iterations, as<float>(out), stream); };
    MEASURE_OR_SKIP({{"wave.plus.one", cuda::known::fma_block_flops(blocks, iterations), 0, fma}});
    expect(Bound::occupancy);
    EXPECT_EQ(explained_.verdicts.steps[0].rule, "idle-sms") << account(explained_, 0);
    // All SMs but one are idle for the second half.
    const StepLedger& step = explained_.ledger.steps[0];
    EXPECT_NEAR(step.cycles.no_warp, 0.5, 0.06) << account(explained_, 0);
}

TEST_F(GpuVerdict, ASingleBlockIsOccupancyLimited) {
    constexpr int iterations = 1000;
    const DeviceBuffer out(device(), sizeof(float) * cuda::known::fma_block_threads);
    const auto fma = [&](cudaStream_t stream) { cuda::known::fma_blocks(1, iterations, as<float>(out), stream); };
    MEASURE_OR_SKIP({{"one.block", cuda::known::fma_block_flops(1, iterations), 0, fma}});
    expect(Bound::occupancy);
    EXPECT_EQ(explained_.verdicts.steps[0].rule, "idle-sms") << account(explained_, 0);
}

TEST_F(GpuVerdict, FmaOnHalfTheSmsIsOccupancyLimited) {
    constexpr int iterations = 1000;
    const int blocks = multiprocessors() / 2;
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks) * cuda::known::fma_block_threads);
    const auto fma = [&](cudaStream_t stream) { cuda::known::fma_blocks(blocks, iterations, as<float>(out), stream); };
    MEASURE_OR_SKIP({{"half", cuda::known::fma_block_flops(blocks, iterations), 0, fma}});
    expect(Bound::occupancy);
    const CycleAccount& cycles = explained_.cycles.steps[0];
    EXPECT_NEAR(cycles.no_warp, 0.5, 0.05) << account(explained_, 0);
    EXPECT_NEAR(cycles.issuing, 0.5, 0.05) << account(explained_, 0);  // an FMA a cycle, of each scheduler with work
}

/// Few warps, that wait nearly always: for the tensor pipe, which has no time for more.
TEST_F(GpuVerdict, MmaAtThePipesPaceIsComputeBoundAndNotOccupancyLimited) {
    using cuda::probe::Mma;
    if (const char* why = cuda::probe::mma_unsupported(Mma::fp16_16x8x16); *why != '\0') GTEST_SKIP() << why;
    const int blocks = multiprocessors();
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks * cuda::probe::mma_threads));
    const auto mma = [&](cudaStream_t stream) {
        cuda::probe::mma_chains(Mma::fp16_16x8x16, 8, blocks, 500, out.data(), nullptr, stream);
    };
    MEASURE_OR_SKIP({{"mma", 0, 0, mma}});
    expect(Bound::compute);
    EXPECT_EQ(explained_.verdicts.steps[0].level, "tensor pipe") << account(explained_, 0);
    EXPECT_LT(explained_.ledger.steps[0].step->counters.at("achieved_occupancy"), 30) << account(explained_, 0);
}

TEST_F(GpuVerdict, SharedMemoryIsAMemoryThatBinds) {
    for (const int ways : {1, 2, 8}) {
        result_ = {};
        const int blocks = 8 * multiprocessors();
        const DeviceBuffer out(device(),
                               sizeof(std::uint32_t) * static_cast<std::size_t>(blocks) * cuda::known::unit_threads);
        const auto read = [&](cudaStream_t stream) {
            cuda::known::bank_conflicts(ways, blocks, 2000 / ways, as<std::uint32_t>(out), stream);
        };
        MEASURE_OR_SKIP({{"shared", 0, 0, read}});
        const Verdict& verdict = explained_.verdicts.steps[0];
        if (ways == 1 && verdict.level == "load-store unit") continue;  // without conflicts it is as busy
        expect(Bound::bandwidth);
        EXPECT_EQ(verdict.level, "shared memory") << account(explained_, 0);
    }
}

TEST_F(GpuVerdict, SpecialFunctionsBindLikeAnyUnit) {
    const int blocks = 8 * multiprocessors();
    const DeviceBuffer out(device(), sizeof(float) * static_cast<std::size_t>(blocks) * cuda::known::unit_threads);
    const auto powers = [&](cudaStream_t stream) {
        cuda::known::special_functions(blocks, 200, as<float>(out), stream);
    };
    MEASURE_OR_SKIP({{"ex2", 0, 0, powers}});
    expect(Bound::compute);
    EXPECT_EQ(explained_.verdicts.steps[0].level, "special-function unit") << account(explained_, 0);
}

TEST_F(GpuVerdict, APointerChaseAtFullOccupancyIsLatencyBound) {
    constexpr std::uint32_t nodes = 1u << 23;  // 512 MiB, past every L2
    constexpr int loads = 1000;
    const DeviceBuffer chain(device(), std::size_t{nodes} * cuda::known::chase_stride_bytes);
    const auto warps = static_cast<std::size_t>(cuda::known::chase_warps());
    const DeviceBuffer out(device(), sizeof(std::uint32_t) * warps);
    cuda::known::make_chase(as<std::uint32_t>(chain), nodes, stream());
    const auto chase = [&](cudaStream_t stream) {
        cuda::known::chase(as<std::uint32_t>(chain), nodes, loads, as<std::uint32_t>(out), stream);
    };
    MEASURE_OR_SKIP({{"chase", 0, static_cast<double>(warps) * loads * sizeof(std::uint32_t), chase}});
    expect(Bound::latency);
    EXPECT_GT(explained_.ledger.steps[0].step->counters.at("achieved_occupancy"), 80) << account(explained_, 0);
    const CycleAccount& cycles = explained_.cycles.steps[0];
    ASSERT_FALSE(cycles.lost.empty()) << cycles.not_split;
    EXPECT_EQ(cycles.lost[0].reason, "long_scoreboard") << account(explained_, 0);
    EXPECT_GT(cycles.lost[0].low, 0.9 * cycles.not_issuing) << account(explained_, 0);
}

}  // namespace
}  // namespace kbench
