// A CPU's cores and bandwidth taken away from a small model, on whatever machine this is: what is measured fits the
// point, or says why there is nothing, and leaves threads and results as they were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "analysis/explain/elasticity.h"
#include "analysis/explain/theft.h"
#include "bench/device/fewer_threads.h"
#include "bench/measure/point/cpu_thief.h"
#include "bench/measure/point/forward.h"
#include "bench/measure/point/measure.h"
#include "bench/measure/sweep/planning.h"
#include "bench/plan/provider.h"
#include "models/gpt2.h"
#include "tests/bench/small_run.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// CPUs on which OpenMP's threads run.
std::vector<int> cpus_of_threads() {
    std::vector<int> cpus(static_cast<std::size_t>(omp_get_max_threads()));
#pragma omp parallel
    cpus[static_cast<std::size_t>(omp_get_thread_num())] = sched_getcpu();
    return cpus;
}

TEST(CpuTheft, FewerThreadsAreTheFirstAndAllComeBackToTheirCores) {
    const DeviceInfo& info = cpu().info();
    const std::vector<int> before = cpus_of_threads();
    ASSERT_EQ(static_cast<int>(before.size()), info.threads);
    for (int threads = 1; threads <= info.threads; ++threads) {
        const FewerThreads fewer(cpu(), threads);
        EXPECT_EQ(omp_get_max_threads(), threads);
        const std::vector<int> first(before.begin(), before.begin() + threads);
        EXPECT_TRUE(!info.pinned || cpus_of_threads() == first) << threads;
    }
    EXPECT_EQ(omp_get_max_threads(), info.threads);
    EXPECT_TRUE(!info.pinned || cpus_of_threads() == before);
}

template <class Run>
void expect_times(const Run& run, std::size_t steps) {
    EXPECT_GT(run.launches, 0);
    EXPECT_GT(run.latency_ms, 0);
    ASSERT_EQ(run.step_us.size(), steps);
    for (std::size_t s = 0; s < steps; ++s) {
        EXPECT_LE(run.step_low_us[s], run.step_us[s]);
        EXPECT_LE(run.step_us[s], run.step_high_us[s]);
    }
}

/// A small model measured with all that takes threads and bandwidth away; `gb_per_s` is the roof of DRAM, 0 none.
Point measured_without(double sm_scaling_s, double theft_s, double gb_per_s = 5,
                       const std::function<void(RunOptions& options)>& change = {}) {
    RunOptions options = small_run({});
    options.sm_scaling_s = sm_scaling_s;
    options.theft_s = theft_s;
    options.marginal_s = 0;
    if (change) change(options);
    CeilingRun roofs;
    if (gb_per_s > 0) {
        Ceiling& dram = roofs.ceilings.emplace_back();
        dram.name = "cpu_dram_read";
        dram.value = Quantity::measured(gb_per_s);
    }
    const Model model = make_gpt2(small_config(), 2, 33, AttentionKind::fused);
    const auto providers = make_providers(BackendKind::cpu, {});
    Point point;
    point.set("backend", "cpu");
    Plan plan = plan_point(model, assign_steps(model, Precision::fp32, providers, {}, 1), cpu(), point, {});
    RandomWeights weights(1);
    std::vector<std::string> warnings;
    measure({.plan = plan,
             .device = cpu(),
             .profiler = cpu_profiler(),
             .options = options,
             .weights = weights,
             .point = point,
             .warnings = warnings,
             .roofs = Roofs(roofs, "cpu")});
    EXPECT_THAT(warnings, testing::Not(testing::Contains(HasSubstr("time against")))) << "ends early";
    return point;
}

TEST(CpuTheft, TimesOnFewerThreadsAreOfThePointsSteps) {
    const Point point = measured_without(0.2, 0);
    EXPECT_FALSE(point.theft.has_value()) << "not asked for";
    ASSERT_TRUE(point.sm_scaling.has_value());
    const SmElasticity elasticity = sm_elasticity(make_facts(point, {}));
    EXPECT_EQ(elasticity.workers, Workers::threads);
    if (cpu().info().threads == 1) {
        EXPECT_THAT(point.sm_scaling->unavailable, HasSubstr("one thread"));
        return;
    }
    ASSERT_THAT(point.sm_scaling->unavailable, IsEmpty());
    EXPECT_EQ(point.sm_scaling->runs.front().multiprocessors, cpu().info().threads);
    for (const SmCountRun& run : point.sm_scaling->runs) {
        expect_times(run, point.steps.size());
        EXPECT_GE(2 * run.multiprocessors, cpu().info().threads);
    }
    ASSERT_TRUE(elasticity.model.has_value()) << elasticity.unavailable;
    EXPECT_EQ(elasticity.steps.size(), point.steps.size());
}

TEST(CpuTheft, TimesBesideAThiefAreOfThePointsStepsOrAreRefused) {
    const auto begin = std::chrono::steady_clock::now();
    const Point point = measured_without(0, 0.02);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
    EXPECT_FALSE(point.sm_scaling.has_value()) << "not asked for";
    ASSERT_TRUE(point.theft.has_value());
    const BandwidthElasticity theft = bandwidth_elasticity(make_facts(point, {}));
    EXPECT_EQ(omp_get_max_threads(), cpu().info().threads);
    if (!point.theft->unavailable.empty()) {
        EXPECT_THAT(point.theft->runs, IsEmpty());
        EXPECT_THAT(point.theft->unavailable, testing::AnyOf(HasSubstr("no thief beside the work"),
                                                             HasSubstr("more than what a thief takes explains"),
                                                             HasSubstr("no time on its core")));
        EXPECT_FALSE(theft.model.has_value());
        return;
    }
    EXPECT_EQ(point.theft->runs.front().takes, "nothing");
    for (const ThiefRun& run : point.theft->runs) {
        expect_times(run, point.steps.size());
        EXPECT_GE(4 * run.multiprocessors, 3 * cpu().info().threads);
        EXPECT_EQ(run.share > 0, run.takes == "dram") << run.takes;
        EXPECT_LT(run.share, 1);
    }
    ASSERT_TRUE(theft.model.has_value()) << theft.unavailable;
    EXPECT_THAT(theft.model->l2.effects, IsEmpty()) << "a CPU's thief takes no cache";
    EXPECT_EQ(theft.model->dram.effects.empty(), theft.model->dram.elasticity == std::nullopt);
}

TEST(CpuTheft, ExperimentsThatTakeLongerThanTheirTimeAreLeftOut) {
    const auto change = [](RunOptions& options) {
        options.size_scaling_s = 0.001;
        options.experiments_s = 1e-6;
    };
    const Point point = measured_without(1, 0.02, 5, change);
    if (cpu().info().threads > 1) {
        EXPECT_THAT(point.sm_scaling->unavailable, HasSubstr("--time-budget leaves"));
    }
    const std::string no_thief = why_no_thief(cpu());
    EXPECT_THAT(point.theft->unavailable, HasSubstr(no_thief.empty() ? "--time-budget leaves" : no_thief))
        << "more time does not help where no core is left";
    ASSERT_FALSE(point.size_scaling.empty());
    for (const SizeScaling& scaling : point.size_scaling) {
        EXPECT_THAT(scaling.unavailable, testing::AnyOf(HasSubstr("of --time-budget"), HasSubstr("no size of")));
        EXPECT_THAT(scaling.times, IsEmpty());
    }
}

TEST(CpuTheft, StepsAtLargerSizesHaveTheTimeThatOthersLeave) {
    const auto measured_in = [](double experiments_s) {
        return measured_without(0, 0, 5, [experiments_s](RunOptions& options) {
            options.size_scaling_s = 0.001;
            options.experiments_s = experiments_s;
        });
    };
    const auto seconds = [](const Point& point, const char* phase) {
        const auto found = point.phase_seconds.find(phase);
        return found == point.phase_seconds.end() ? 0 : found->second;
    };
    const double short_s = seconds(measured_in(0.3), "size_scaling");
    EXPECT_GT(short_s, 0);
    EXPECT_LT(short_s, 3) << "all but a step that had begun";
    const Point point = measured_in(60);
    EXPECT_TRUE(std::ranges::any_of(point.size_scaling, [](const SizeScaling& s) { return !s.times.empty(); }));
}

/// A run whose roofs were contradicted has none.
TEST(CpuTheft, FindsARoofItselfWhereTheRunHasNone) {
    EXPECT_THAT(measured_without(0, 0.01, 0).theft->unavailable, testing::Not(HasSubstr("no roof of DRAM")));
}

/// One thread leaves a thief room wherever there are two cores. The roof is far above any machine's, so that shares of
/// it are small; of one that the thief found itself they would not be.
TEST(CpuTheft, TakesSharesOfTheRoofThatTheRunHas) {
    constexpr double gb_per_s = 1e6;
    const TemporaryDirectory directory;
    const FewerThreads one_thread(cpu(), 1);
    OtherDevice device;
    device.told = cpu().info();
    device.told->threads = 1;
    RunOptions options = small_run(directory / "");
    options.theft_s = 0.02;
    Result result;
    Ceiling& dram = result.ceilings.ceilings.emplace_back();
    dram.name = "cpu_dram_read";
    dram.value = Quantity::measured(gb_per_s);
    Progress progress;
    run_points(options, device, cpu_profiler(), result, progress);
    ASSERT_EQ(result.points.size(), 1u);
    const BandwidthTheft& theft = result.points.front().theft.value();
    if (!theft.unavailable.empty()) GTEST_SKIP() << theft.unavailable;
    int taking = 0;
    for (const ThiefRun& run : theft.runs) {
        taking += run.takes == "dram";
        EXPECT_EQ(run.multiprocessors, 1);
        EXPECT_LT(run.share, 0.01) << run.takes;
    }
    EXPECT_GT(taking, 0);
}

/// The model's outputs, by ranges that run one after another.
std::vector<float> outputs_of(const Plan& plan, const std::vector<WorkRange>& ranges) {
    for (const WorkRange& range : ranges) range.enqueue();
    const TensorId output = plan.model().outputs.at(0);
    const auto* values = static_cast<const float*>(plan.address(output));
    return {values, values + plan.operand(output).bytes() / static_cast<std::int64_t>(sizeof(float))};
}

TEST(CpuTheft, StepsMadeForFewerThreadsComputeTheSame) {
    const Model model = make_gpt2(small_config(), 2, 33, AttentionKind::fused);
    const auto providers = make_providers(BackendKind::cpu, {});
    Plan plan(model, Precision::fp32, assign_steps(model, Precision::fp32, providers, {}, 1));
    RandomWeights weights(5);
    plan.allocate(cpu(), weights);
    for (const TensorId id : model.inputs) plan.set_input(id, input_bytes(model.tensors[id], plan.operand(id), "", 5));
    const std::vector<WorkRange> ranges = ranges_of(plan, cpu());
    const std::vector<float> on_all = outputs_of(plan, ranges);
    {
        const FewerThreads fewer(cpu(), 1);
        const std::vector<float> on_one = outputs_of(plan, ranges_made_again(plan, cpu()));
        ASSERT_EQ(on_one.size(), on_all.size());
        for (std::size_t i = 0; i < on_all.size(); ++i) ASSERT_NEAR(on_one[i], on_all[i], 1e-3) << i;
    }
    EXPECT_EQ(outputs_of(plan, ranges), on_all) << "all threads are back";
}

}  // namespace
}  // namespace kbench
