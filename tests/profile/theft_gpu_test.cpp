// A thief beside kernels of known nature: what it takes away slows down what needs it, and nothing else.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analysis/explain/theft.h"
#include "bench/device/device.h"
#include "bench/device/multiprocessors.h"
#include "bench/measure/point/theft.h"
#include "kbench/error.h"
#include "kernels/probe/fma.h"
#include "kernels/probe/memory.h"
#include "kernels/spin.h"
#include "tests/profile/known_kernels.h"
#include "tests/profile/known_steps.h"

namespace kbench {
namespace {

using Enqueue = std::function<void(cudaStream_t stream)>;

class GpuTheft : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (!cuda_unavailable().empty()) return;
        const std::unique_ptr<Device> device = make_cuda_device();
        roofs_ = std::make_unique<Roofs>(measured_roofs(*device, 2), "cuda");
        // A process's first recording waits for all streams, and would for a thief's, until its deadline.
        auto* const stream = static_cast<cudaStream_t>(device->stream());
        WorkOnPart({{.group = "", .name = "spin", .enqueue = [stream] { cuda::spin(1000, 1, stream); }}}, *device)
            .times(0.01);
    }
    static void TearDownTestSuite() { roofs_.reset(); }

    void SetUp() override {
        if (!cuda_unavailable().empty()) GTEST_SKIP() << cuda_unavailable();
        device_ = make_cuda_device();
        thief_sms_ = multiprocessors_of_thief(device_->multiprocessors());
        count_ = device_->multiprocessors() - thief_sms_;
        if (thief_sms_ == 0) GTEST_SKIP() << "this GPU has too few SMs for a thief beside the work";
    }

    WorkOnPart work_of(const std::vector<std::pair<std::string, Enqueue>>& steps) {
        auto* const stream = static_cast<cudaStream_t>(device_->stream());
        std::vector<WorkRange> ranges;
        for (const auto& [name, enqueue] : steps)
            ranges.push_back({.group = "", .name = name, .enqueue = [enqueue, stream] { enqueue(stream); }});
        return {std::move(ranges), *device_};
    }

    /// Steps beside every thief, as a forward is measured.
    BandwidthElasticity measured(const std::vector<std::pair<std::string, Enqueue>>& steps) {
        point_ = {};
        for (const auto& [name, enqueue] : steps) {
            StepResult& step = point_.steps.emplace_back();
            step.op = step.layer = name;
        }
        const std::unique_ptr<Thief> thief = make_thief(*device_, thief_sms_);
        WorkOnPart work = work_of(steps);
        run_beside_thieves(
            {.times = times_of(work), .thief = *thief, .multiprocessors = count_, .roofs = *roofs_, .seconds = 0.2},
            point_.theft.emplace());
        return bandwidth_elasticity(make_facts(point_, *roofs_));
    }

    /// What was seen, for whoever reads a failure.
    std::string account(const BandwidthElasticity& theft) const {
        std::string text = theft.unavailable;
        for (const ThiefRun& run : point_.theft->runs)
            text += fmt::format("{} {:.3f} at {:.0f} MHz: {:.3f} ms\n", run.takes, run.share,
                                run.sm_clock_mhz.value.value_or(0), run.latency_ms);
        for (const TheftGroup& group : theft.steps)
            text += sentence(group, group.dram) + "\n" + sentence(group, group.l2) + "\n";
        return text;
    }

    std::unique_ptr<Device> device_;
    int count_ = 0, thief_sms_ = 0;  ///< SMs of the work and of the thief
    Point point_;
    static inline std::unique_ptr<Roofs> roofs_;
};

TEST_F(GpuTheft, NoOtherWorkRunsOnItsSms) {
    const std::unique_ptr<Thief> thief = make_thief(*device_, thief_sms_);
    constexpr std::size_t most_sms = 1024;
    const DeviceBuffer ids(*device_, most_sms * sizeof(unsigned));
    auto* const stream = static_cast<cudaStream_t>(device_->stream());
    for (const Taken what : {Taken::nothing, Taken::compute, Taken::dram, Taken::l2}) {
        device_->fill(ids.data(), 0, ids.bytes());
        cuda::known::note_sms(reinterpret_cast<unsigned*>(ids.data()), 1, stream);  // loads the kernel
        device_->fill(ids.data(), 0, ids.bytes());
        thief->start(what, 100e9);
        cuda::known::note_sms(reinterpret_cast<unsigned*>(ids.data()), 4096, stream);
        device_->synchronize();
        EXPECT_TRUE(thief->is_running());
        thief->stop();
        std::vector<unsigned> seen(most_sms);
        device_->download(seen.data(), ids.data(), ids.bytes());
        EXPECT_EQ(std::count(seen.begin(), seen.end(), 1u), count_);
    }
}

/// Nothing that is recorded waits for the thief, and none of its kernels is taken for the work's.
TEST_F(GpuTheft, WorkIsRecordedWhileTheThiefGoesOn) {
    const std::unique_ptr<Thief> thief = make_thief(*device_, thief_sms_);
    const int sms = count_;
    WorkOnPart work = work_of({{"spin", [sms](cudaStream_t stream) { cuda::spin(100000, sms, stream); }}});
    thief->start(Taken::nothing, 0);
    const double alone_us = work.times(0.1).us.at(0).median;
    for (const Taken what : {Taken::compute, Taken::dram, Taken::l2}) {
        thief->start(what, what == Taken::compute ? 0 : 300e9);
        bool ran = false;
        const RangeTimes times = work.times(0.1, {.begin = {}, .end = [&] { ran = thief->is_running(); }});
        EXPECT_TRUE(ran) << "something waited for it until its deadline";
        EXPECT_TRUE(thief->is_running()) << "something waited for it until its deadline";
        thief->stop();
        EXPECT_FALSE(thief->is_running());
        ASSERT_EQ(times.us.size(), 1u);
        EXPECT_NEAR(times.us[0].median / alone_us, 1, 0.15);
    }
}

/// A thief that read host memory made kernels beside it up to 60 us longer.
TEST_F(GpuTheft, KernelsEndNoLaterBesideIt) {
    const std::unique_ptr<Thief> thief = make_thief(*device_, thief_sms_);
    const int sms = count_;
    std::vector<std::pair<std::string, Enqueue>> steps(100);
    for (auto& [name, enqueue] : steps) {
        name = "spin";
        enqueue = [sms](cudaStream_t stream) { cuda::spin(9000, sms, stream); };  // 5 us
    }
    WorkOnPart work = work_of(steps);
    const double alone_ms = work.times(0.1).latency_ms.median;
    for (const Taken what : {Taken::nothing, Taken::compute, Taken::dram, Taken::l2}) {
        thief->start(what, what == Taken::dram || what == Taken::l2 ? 300e9 : 0);
        EXPECT_LT(work.times(0.1).latency_ms.median, 1.15 * alone_ms) << static_cast<int>(what);
    }
}

TEST_F(GpuTheft, TakesTheSharesThatItIsAskedFor) {
    const int sms = count_;
    measured({{"spin", [sms](cudaStream_t stream) { cuda::spin(100000, sms, stream); }}});
    std::map<std::string, std::vector<double>> shares;
    for (const ThiefRun& run : point_.theft->runs) shares[run.takes].push_back(run.share);
    for (const char* takes : {"dram", "l2"}) {
        std::ranges::sort(shares[takes]);
        ASSERT_EQ(shares[takes].size(), 3u);
        EXPECT_NEAR(shares[takes][0] / 0.1, 1, 0.1) << takes;
        EXPECT_NEAR(shares[takes][1] / 0.2, 1, 0.1) << takes;
        EXPECT_GE(shares[takes][2], 0.2) << takes << ": 20 SMs may take no more";
        EXPECT_LE(shares[takes][2], 0.33) << takes;
    }
    EXPECT_EQ(point_.theft->runs.size(), 10u);
}

TEST_F(GpuTheft, ACopyIsBoundByDramAlone) {
    constexpr std::int64_t bytes = std::int64_t{1} << 30;
    const DeviceBuffer to(*device_, bytes), from(*device_, bytes);
    device_->fill(from.data(), 0x3f, bytes);
    device_->synchronize();
    const int sms = count_;
    const BandwidthElasticity theft =
        measured({{"copy", [&](cudaStream_t stream) {
                       const cuda::probe::MemoryBuffers buffers{.a = to.data(), .b = from.data(), .bytes = bytes};
                       cuda::probe::stream_memory(cuda::probe::Traffic::copy, {.blocks_per_sm = 0}, buffers, 0, sms,
                                                  nullptr, stream);
                   }}});
    ASSERT_EQ(theft.unavailable, "");
    EXPECT_NEAR(theft.steps.at(0).dram.elasticity->value, 1, 0.3) << account(theft);
    EXPECT_EQ(theft.steps[0].dram.finding, BandwidthFinding::binds) << account(theft);
    EXPECT_NE(theft.steps[0].l2.finding, BandwidthFinding::binds) << account(theft);
}

TEST_F(GpuTheft, ReadsThatStayInL2AreBoundByL2Alone) {
    using cuda::known::l2_chunk_bytes;
    const std::int64_t bytes = device_->info().gpu->l2_bytes / 16 / l2_chunk_bytes * l2_chunk_bytes;
    const DeviceBuffer data(*device_, static_cast<std::size_t>(bytes)), sums(*device_, cuda::probe::memory_sums * 4);
    const DeviceBuffer taken(*device_, 2 * sizeof(std::uint32_t));
    device_->fill(data.data(), 0x3f, data.bytes());
    for (const DeviceBuffer* zero : {&sums, &taken}) device_->fill(zero->data(), 0, zero->bytes());
    device_->synchronize();
    const int sms = count_;
    const auto words = [](const DeviceBuffer& buffer) { return reinterpret_cast<std::uint32_t*>(buffer.data()); };
    const BandwidthElasticity theft = measured({{"l2", [&](cudaStream_t stream) {
                                                     cuda::known::read_l2_always(data.data(), bytes, sms, 2400 * sms,
                                                                                 words(taken), words(sums), stream);
                                                 }}});
    ASSERT_EQ(theft.unavailable, "");
    EXPECT_NEAR(theft.steps.at(0).l2.elasticity->value, 1, 0.3) << account(theft);
    EXPECT_EQ(theft.steps[0].l2.finding, BandwidthFinding::binds) << account(theft);
    EXPECT_NE(theft.steps[0].dram.finding, BandwidthFinding::binds) << account(theft);
    EXPECT_LT(theft.steps[0].dram.elasticity->value, 0.3) << account(theft);
}

TEST_F(GpuTheft, FmaIsBoundByNeither) {
    const int blocks = 64 * count_;
    const DeviceBuffer out(*device_, sizeof(float) * static_cast<std::size_t>(blocks) * cuda::probe::fma_threads);
    const BandwidthElasticity theft =
        measured({{"fma", [&](cudaStream_t stream) {
                       cuda::probe::fma_chains(DataType::fp32, 8, blocks, 64, out.data(), nullptr, stream);
                   }}});
    ASSERT_EQ(theft.unavailable, "");
    for (const Level level : {Level::dram, Level::l2})
        EXPECT_EQ(theft.steps.at(0).at(level).finding, BandwidthFinding::does_not_bind) << account(theft);
}

/// A chain of loads waits for latency, which grows a little with traffic.
TEST_F(GpuTheft, AChaseIsBoundByNeither) {
    constexpr std::uint32_t nodes = 1u << 23;  // 512 MiB
    const DeviceBuffer chain(*device_, std::size_t{nodes} * cuda::known::chase_stride_bytes);
    const DeviceBuffer out(*device_, sizeof(std::uint32_t) * static_cast<std::size_t>(cuda::known::chase_warps()));
    auto* const own = static_cast<cudaStream_t>(device_->stream());
    auto* const words = reinterpret_cast<std::uint32_t*>(chain.data());
    cuda::known::make_chase(words, nodes, own);
    device_->synchronize();
    const BandwidthElasticity theft =
        measured({{"chase", [&](cudaStream_t stream) {
                       cuda::known::chase(words, nodes, 400, reinterpret_cast<std::uint32_t*>(out.data()), stream);
                   }}});
    ASSERT_EQ(theft.unavailable, "");
    for (const Level level : {Level::dram, Level::l2}) {
        EXPECT_NE(theft.steps.at(0).at(level).finding, BandwidthFinding::binds) << account(theft);
        EXPECT_LT(theft.steps[0].at(level).elasticity->value, 0.3) << account(theft);
    }
}

}  // namespace
}  // namespace kbench
