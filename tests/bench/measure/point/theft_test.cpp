// Which work cannot run beside a thief, and which runs there are beside one that does nothing.
#include "bench/measure/point/theft.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/measure/point/parts.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "kbench/statistics.h"
#include "models/gpt2.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

/// A recurrent layer as on an H100: 500 time steps in a kernel of 128 blocks, one an SM.
StepResult persistent_layer() {
    StepResult step;
    step.implementation = "persistent_lstm<fp16>";
    step.time_steps = 500;
    KernelResult fill, kernel;
    fill.grid = {64, 1, 1};
    fill.blocks_per_sm = 16;
    kernel.grid = {128, 1, 1};
    kernel.blocks_per_sm = 1;
    kernel.waves = Quantity::derived(128.0 / 132);
    step.kernels = {fill, kernel};
    return step;
}

TEST(WhyNotBesideThief, IsABlockThatWouldWaitForOneWithoutAnSm) {
    const std::vector<StepResult> steps{persistent_layer()};
    EXPECT_EQ(why_not_beside_thief(steps, 112),
              "all 128 blocks of persistent_lstm<fp16> must run at once, and a thief leaves room for 112");
    EXPECT_EQ(why_not_beside_thief(steps, 128), "");
}

TEST(WhyNotBesideThief, IsNothingWhereBlocksWaitForNone) {
    StepResult product = persistent_layer(), by_step = persistent_layer(), unknown = persistent_layer(),
               in_waves = persistent_layer(), weights = persistent_layer();
    product.time_steps = {};
    by_step.kernels.assign(500, by_step.kernels.back());
    unknown.kernels.back().blocks_per_sm = 0;
    in_waves.kernels.back().grid[0] = 4000;
    in_waves.kernels.back().waves = Quantity::derived(30);
    weights.direction = Direction::wgrad;
    for (const StepResult& step : {product, by_step, unknown, in_waves, weights})
        EXPECT_EQ(why_not_beside_thief(std::vector{step}, 112), "");
}

/// Keeps what it was told, and takes what it is to take in no time at all.
class PoliteThief final : public Thief {
  public:
    std::vector<std::pair<Taken, double>> starts;

    void start(Taken what, double bytes_per_s) override { starts.emplace_back(what, bytes_per_s); }
    bool is_running() override { return true; }
    void stop() override {}
    Count count() const override {
        seconds_ += 1;
        return {starts.back().second * seconds_, seconds_};
    }

  private:
    mutable double seconds_ = 0;
};

/// Times of work that takes 1 ms whatever is beside it.
RangeTimes steady(double, const RecordedLaunches& around) {
    around.begin();
    around.end();
    RangeTimes times;
    times.launches = 5;
    times.latency_ms = summarise(std::vector<double>(5, 1.0));
    return times;
}

Roofs roofs_of(std::string_view backend, std::initializer_list<const char*> bandwidths) {
    CeilingRun run;
    for (const char* name : bandwidths) {
        Ceiling& ceiling = run.ceilings.emplace_back();
        ceiling.name = name;
        ceiling.value = Quantity::measured(1000);
    }
    return {run, backend};
}

/// What is taken in the runs beside a thief, in their order, such as "dram 0.3".
std::vector<std::string> runs_beside(PoliteThief& thief, const Roofs& roofs,
                                     const std::function<void(TheftSetup& setup)>& change) {
    TheftSetup setup{.times = steady, .thief = thief, .multiprocessors = 112, .roofs = roofs, .seconds = 1e-2};
    if (change) change(setup);
    BandwidthTheft theft;
    run_beside_thieves(setup, theft);
    std::vector<std::string> taken;
    for (const ThiefRun& beside : theft.runs) {
        EXPECT_EQ(beside.multiprocessors, 112);
        taken.push_back(fmt::format("{} {:.1f}", beside.takes, beside.share));
    }
    return taken;
}

using testing::ElementsAre;

Roofs of_gpu() { return roofs_of("cuda", {"dram_read", "l2_read"}); }

TEST(RunsBesideThieves, AreAllTenOfAGpuWhateverTheyTake) {
    PoliteThief thief;
    EXPECT_THAT(runs_beside(thief, of_gpu(), {}),
                ElementsAre("nothing 0.0", "compute 0.0", "dram 0.3", "l2 0.3", "compute 0.0", "dram 0.1", "l2 0.1",
                            "l2 0.2", "dram 0.2", "compute 0.0"));
    EXPECT_EQ(thief.starts[2], std::pair(Taken::dram, 0.3 * 1000e9));
}

TEST(RunsBesideThieves, AreTheDecidingOnesOfLongWork) {
    PoliteThief thief;
    EXPECT_THAT(runs_beside(thief, of_gpu(), [](TheftSetup& setup) { setup.is_short = true; }),
                ElementsAre("nothing 0.0", "compute 0.0", "dram 0.3", "l2 0.3", "compute 0.0"));
}

TEST(RunsBesideThieves, EndWithTheirTimeButNotBeforeOneBesideATheftOfDram) {
    PoliteThief thief;
    EXPECT_THAT(runs_beside(thief, of_gpu(), [](TheftSetup& setup) { setup.longest_s = 0; }),
                ElementsAre("nothing 0.0", "compute 0.0", "dram 0.3"));
}

TEST(RunsBesideThieves, LeaveALevelWithoutARoofOut) {
    PoliteThief thief;
    EXPECT_THAT(
        runs_beside(thief, roofs_of("cpu", {"cpu_dram_read"}), {}),
        ElementsAre("nothing 0.0", "compute 0.0", "dram 0.3", "compute 0.0", "dram 0.1", "dram 0.2", "compute 0.0"));
}

std::vector<std::string> runs_in_turns(const std::function<void(TheftSetup& setup)>& change) {
    PoliteThief thief;
    return runs_beside(thief, roofs_of("cpu", {"cpu_dram_read"}), [&](TheftSetup& setup) {
        setup.in_turns = true;
        if (change) change(setup);
    });
}

TEST(RunsBesideThieves, TakeTurnsThatBeginAsTheOnesBeforeEnded) {
    const std::vector<std::string> runs = runs_in_turns({});
    ASSERT_EQ(runs.size(), 1 + 2 * 16u);
    EXPECT_EQ(runs.front(), "nothing 0.0");
    for (std::size_t turn = 0; turn < 16; ++turn) {
        const bool takes_first = turn % 2 != 0;
        EXPECT_EQ(runs[1 + 2 * turn], takes_first ? "dram 0.3" : "compute 0.0") << turn;
        EXPECT_EQ(runs[2 + 2 * turn], takes_first ? "compute 0.0" : "dram 0.3") << turn;
    }
}

TEST(RunsBesideThieves, TakeTurnsOnlyWhereThereIsTimeForEnoughOfThemAndARoof) {
    const std::vector<std::string> one_by_one{"nothing 0.0", "compute 0.0", "dram 0.3",   "compute 0.0",
                                              "dram 0.1",    "dram 0.2",    "compute 0.0"};
    EXPECT_EQ(runs_in_turns([](TheftSetup& setup) { setup.alone_ms = 100, setup.longest_s = 3; }), one_by_one);
    const Roofs none = roofs_of("cpu", {});
    PoliteThief thief;
    EXPECT_THAT(runs_beside(thief, none, [](TheftSetup& setup) { setup.in_turns = true; }),
                ElementsAre("nothing 0.0", "compute 0.0", "compute 0.0", "compute 0.0"));
}

/// A run takes 12.5 ms, so that half of the time is over after eight turns: twelve are wanted. A slow machine has
/// fewer.
TEST(RunsBesideThieves, EndTurnsWithTheirTime) {
    const std::vector<std::string> runs = runs_in_turns([](TheftSetup& setup) {
        setup.longest_s = 0.4;
        setup.times = [](double seconds, const RecordedLaunches& around) {
            std::this_thread::sleep_for(std::chrono::microseconds(12500));
            return steady(seconds, around);
        };
    });
    EXPECT_GE(runs.size(), 1 + 2 * 6u);
    EXPECT_LE(runs.size(), 1 + 2 * 12u);
}

/// As on two hyperthreads of one core.
TEST(RunsBesideThieves, InTurnsThatTakeFarLongerThanBesideAnIdleOneAreNone) {
    for (const double beside_compute_ms : {1.4, 1.6}) {
        PoliteThief thief;
        const auto times = [&](double seconds, const RecordedLaunches& around) {
            RangeTimes found = steady(seconds, around);
            if (thief.starts.back().first == Taken::compute)
                found.latency_ms = summarise(std::vector<double>(5, beside_compute_ms));
            return found;
        };
        const Roofs roofs = roofs_of("cpu", {"cpu_dram_read"});
        BandwidthTheft theft;
        run_beside_thieves(
            {.times = times, .thief = thief, .multiprocessors = 1, .roofs = roofs, .seconds = 1e-2, .in_turns = true},
            theft);
        EXPECT_EQ(theft.runs.empty(), beside_compute_ms > 1.5);
        EXPECT_THAT(theft.unavailable,
                    testing::HasSubstr(beside_compute_ms > 1.5 ? "more than what a thief takes" : ""));
    }
}

/// A thief that ends after a few turns: what is left is taken for no other kind of runs.
TEST(RunsBesideThieves, InTurnsThatEndInAnErrorAreNone) {
    class EndingThief final : public Thief {
      public:
        void start(Taken, double) override { ++starts_; }
        bool is_running() override { return starts_ < 8; }
        void stop() override {}
        Count count() const override {
            ++seconds_;
            return {seconds_, seconds_};
        }

      private:
        int starts_ = 0;
        mutable double seconds_ = 0;
    } thief;
    const Roofs roofs = roofs_of("cpu", {"cpu_dram_read"});
    BandwidthTheft theft;
    const TheftSetup setup{
        .times = steady, .thief = thief, .multiprocessors = 1, .roofs = roofs, .seconds = 1e-2, .in_turns = true};
    EXPECT_THROW(run_beside_thieves(setup, theft), DeviceError);
    EXPECT_TRUE(theft.runs.empty());
}

/// What is said of a GPU of so many SMs, whose driver is asked for nothing before: of a point with these steps that
/// takes so long.
std::string refused(int multiprocessors, std::vector<StepResult> steps, double ms, const Roofs& roofs) {
    OtherDevice gpu;
    gpu.told = DeviceInfo{.kind = BackendKind::cuda, .gpu = GpuInfo{}};
    gpu.told->gpu->multiprocessors = multiprocessors;
    const Model model = make_gpt2(small_config(), 1, 8, AttentionKind::fused);
    const auto providers = make_providers(BackendKind::cpu, {});
    Plan plan(model, Precision::fp32, assign_steps(model, Precision::fp32, providers, {}, 1));
    RunOptions options = small_run({});
    options.theft_s = 0.01;
    RandomWeights weights(1);
    Point point;
    point.end_to_end.emplace().latency.summary_ms.median = ms;
    point.steps = std::move(steps);
    std::vector<std::string> warnings;
    measure_theft({.plan = plan,
                   .device = gpu,
                   .profiler = cpu_profiler(),
                   .options = options,
                   .weights = weights,
                   .point = point,
                   .warnings = warnings,
                   .roofs = roofs});
    EXPECT_THAT(point.theft.value().runs, testing::IsEmpty());
    return point.theft->unavailable;
}

TEST(TheftFromAGpu, IsRefusedBeforeAThiefIsMade) {
    const Roofs roofs = roofs_of("cuda", {"dram_read"});
    EXPECT_EQ(refused(132, {}, 120, roofs), "one run takes 0.12 s; those of more than 0.1 s may outlast the thief");
    EXPECT_EQ(refused(132, {}, 20, {}),
              "no roof of DRAM is known, of which a thief could take a share (kbench ceilings measures them)");
    EXPECT_EQ(refused(6, {}, 20, roofs), "this GPU has too few SMs for a thief beside the work");
    EXPECT_EQ(refused(132, {persistent_layer()}, 20, roofs),
              "all 128 blocks of persistent_lstm<fp16> must run at once, and a thief leaves room for 112");
}

TEST(TheftFromAGpu, LeavesTheWorkWhatTheThiefDoesNotTake) {
    EXPECT_EQ(multiprocessors_beside_thief(132), 112);
    EXPECT_EQ(multiprocessors_beside_thief(108), 91);
    EXPECT_THROW(multiprocessors_beside_thief(6), DeviceError);
}

}  // namespace
}  // namespace kbench
