// Time against size on the CPU: which steps and sizes are timed, on what operands, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "bench/measure/point/measure.h"
#include "bench/measure/sweep/planning.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "models/gpt2.h"
#include "models/ops/list.h"
#include "models/problem.h"
#include "tests/bench/small_run.h"

namespace kbench {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// What is measured of a model in fp32, with the CPU's providers or those of `ops`.
std::vector<SizeScaling> scaling_of(const Model& model, const Providers& providers, Device& device = cpu(),
                                    const std::function<void(const std::string&)>& begin = {}) {
    RunOptions options = small_run({});
    options.size_scaling_s = 0.001;
    options.marginal_s = 0;
    Point point;
    Plan plan = plan_point(model, assign_steps(model, Precision::fp32, providers, {}, 1), device, point, {});
    RandomWeights weights(1);
    std::vector<std::string> warnings;
    measure({.plan = plan,
             .device = device,
             .profiler = cpu_profiler(),
             .options = options,
             .weights = weights,
             .point = point,
             .warnings = warnings,
             .on_part = begin});
    if (!point.size_scaling.empty()) {
        EXPECT_GT(point.phase_seconds.at("size_scaling"), 0);
    }
    return point.size_scaling;
}

Providers only(Provider provider) {
    Providers providers;
    providers.push_back(std::make_unique<Provider>(std::move(provider)));
    return providers;
}

/// Products by the reference's loops, `change`d by what `run` does after them.
Provider products(std::function<std::string(const Gemm&)> implementation,
                  std::function<void(const Gemm&, std::span<void* const>)> after = {}) {
    return {.name = "products",
            .ops = {Computes<Gemm>{.make = [=](const Gemm& op, const Step& step, Precision precision) {
                Providers all = make_providers(BackendKind::cpu, {});
                const auto reference = std::ranges::find(all, "reference", [](const auto& p) { return p->name; });
                const std::shared_ptr<Computation> right = (*reference)->make(step, precision);
                class Changed final : public Computation {
                  public:
                    std::string text;
                    std::function<void(std::span<void* const>, void*)> run_it;
                    std::string implementation() const override { return text; }
                    void run(const Call& call) const override { run_it(call.operands, call.workspace); }
                };
                auto changed = std::make_unique<Changed>();
                changed->text = implementation(op);
                changed->run_it = [=](std::span<void* const> pointers, void* workspace) {
                    right->run({pointers, workspace, nullptr});
                    if (after) after(op, pointers);
                };
                return changed;
            }}}};
}

std::string the_same(const Gemm&) { return "loops"; }

TEST(SizeScaling, HasThreeSizesOfEachDistinctStepByTheSameImplementation) {
    const Model model = make_gpt2(small_config(), 2, 33, AttentionKind::fused);
    const std::vector<SizeScaling> all = scaling_of(model, make_providers(BackendKind::cpu, {}));
    ASSERT_FALSE(all.empty());
    EXPECT_LE(all.size(), 16u);
    std::set<int> steps;
    std::map<std::string, int> axes;
    for (const SizeScaling& scaling : all) {
        ASSERT_EQ(scaling.unavailable, "") << scaling.axis;
        ++axes[scaling.axis];
        for (const int step : scaling.steps) EXPECT_TRUE(steps.insert(step).second) << "a step is in two";
        ASSERT_THAT(scaling.times, SizeIs(3));
        for (std::size_t i = 0; i < 3; ++i) {
            const SizeTime& time = scaling.times[i];
            // On a busy host a step may look so long that it is run at 3 times its size.
            EXPECT_THAT(time.factor, testing::AnyOf(i + 1.0, i == 2 ? 4.0 : i + 1.0));
            EXPECT_EQ(time.implementation, scaling.times[0].implementation);
            EXPECT_GE(time.us.n, 6u);
            EXPECT_GT(time.us.median, 0);
            EXPECT_EQ(time.sm_clock_mhz.origin, Origin::unavailable) << "a CPU has none";
            if (i == 0) continue;
            EXPECT_NE(time.shape, scaling.times[0].shape);
            EXPECT_GE(time.work_flops, 1.9 * scaling.times[i - 1].work_flops) << time.shape;
        }
    }
    EXPECT_GT(axes["k"], 0);
    EXPECT_GT(axes["seq"], 0);
}

TEST(SizeScaling, ChainsOfTimeStepsAreRunShorter) {
    const Model model = make_problem_model(parse_problem("rnn", "t64n2h16"), 1, 5);
    const std::vector<SizeScaling> all = scaling_of(model, make_providers(BackendKind::cpu, {}));
    ASSERT_THAT(all, SizeIs(1));
    ASSERT_EQ(all[0].unavailable, "");
    std::vector<double> factors;
    for (const SizeTime& time : all[0].times) factors.push_back(time.factor);
    EXPECT_THAT(factors, testing::ElementsAre(0.25, 0.5, 1));
    EXPECT_THAT(all[0].times[0].shape, testing::HasSubstr("t16"));
    EXPECT_THAT(all[0].times[2].shape, testing::HasSubstr("t64"));
    // A length that has no quarter.
    const Model odd = make_problem_model(parse_problem("rnn", "t50n2h16"), 1, 5);
    EXPECT_GE(scaling_of(odd, make_providers(BackendKind::cpu, {})).at(0).times.at(0).factor, 1);
}

TEST(SizeScaling, StepsThatAreAlikeAreTimedOnce) {
    const Model model = make_problem_model(parse_problem("gemm", "m64n64k64"), 2, 5);
    const std::vector<SizeScaling> all = scaling_of(model, make_providers(BackendKind::cpu, {}));
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_THAT(all[0].steps, testing::ElementsAre(0, 1, 2, 3, 4));
}

/// The kernel takes a microsecond for each element of the sum, and on a busy host each launch as much more. Other work
/// there makes all but the shortest runs longer, and at times all of them: then it is measured again, later.
TEST(SizeScaling, LongerSumsTakeLonger) {
    const Provider in_step = products(the_same, [](const Gemm& op, std::span<void* const>) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(op.k);
        while (std::chrono::steady_clock::now() < end) continue;
    });
    const Model model = make_problem_model(parse_problem("gemm", "m2n2k200"), 1, 1);
    double twice_us = 0, four_times_us = 0;  // longer than once
    std::string largest;
    const auto is_right = [&] { return std::abs(twice_us - 200) < 40 && std::abs(four_times_us - 600) < 80; };
    for (int attempt = 0; attempt < 30 && !is_right(); ++attempt) {
        if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
        const std::vector<SizeScaling> all = scaling_of(model, only(in_step));
        ASSERT_THAT(all, SizeIs(1));
        ASSERT_THAT(all[0].times, SizeIs(3)) << all[0].unavailable;
        largest = all[0].times[2].shape;
        twice_us = all[0].times[1].us.min - all[0].times[0].us.min;
        four_times_us = all[0].times[2].us.min - all[0].times[0].us.min;
    }
    EXPECT_EQ(largest, "m2n2k800");
    EXPECT_NEAR(twice_us, 200, 40);
    EXPECT_NEAR(four_times_us, 600, 80);
}

TEST(SizeScaling, WhatIsWrongAtALargerSizeIsNotTimed) {
    std::map<std::int64_t, int> runs;
    const Provider wrong_when_long = products(the_same, [&](const Gemm& op, std::span<void* const> pointers) {
        ++runs[op.k];
        if (op.k > 64) *static_cast<float*>(pointers[2]) += 100;
    });
    const Model model = make_problem_model(parse_problem("gemm", "m32n32k32"), 1, 1);
    const std::vector<SizeScaling> all = scaling_of(model, only(wrong_when_long));
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_THAT(all[0].unavailable, HasSubstr("verification failed: gemm m32n32k128"));
    EXPECT_THAT(all[0].times, IsEmpty());
    EXPECT_EQ(runs[128], 1) << "to be verified";
    EXPECT_EQ(runs[64], 1) << "nor is any other size timed";
}

TEST(SizeScaling, IsRefusedWhereAnotherImplementationWouldRun) {
    const Model model = make_problem_model(parse_problem("gemm", "m32n32k32"), 1, 1);
    const std::vector<SizeScaling> all =
        scaling_of(model, only(products([](const Gemm& op) { return op.k > 64 ? "tiles" : "loops"; })));
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_EQ(all[0].axis, "k");
    EXPECT_EQ(all[0].unavailable, "gemm m32n32k128 runs tiles, not loops");
}

TEST(SizeScaling, SaysWhereNoSizeOfAKindCanGrow) {
    const Model model = make_problem_model(parse_problem("global_norm", "n100000t2"), 1, 1);
    const std::vector<SizeScaling> all = scaling_of(model, make_providers(BackendKind::cpu, {}));
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_EQ(all[0].unavailable, "no size of global_norm is known to grow with the same kernel");
}

TEST(SizeScaling, SaysWhereTheOperandsDoNotFit) {
    OtherDevice device;
    const Model model = make_problem_model(parse_problem("gemm", "m64n64k64"), 1, 1);
    const std::vector<SizeScaling> all =
        scaling_of(model, make_providers(BackendKind::cpu, {}), device, [&](const std::string& part) {
            if (part == "steps") device.all_memory = 100000;
        });
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_THAT(all[0].unavailable, HasSubstr("GB of memory, 8e-05 GB are free"));
}

TEST(SizeScaling, WeightsRotateAndOtherOperandsStay) {
    std::map<std::int64_t, std::set<void*>> x, w;
    const Provider watching = products(the_same, [&](const Gemm& op, std::span<void* const> pointers) {
        x[op.k].insert(pointers[0]);
        w[op.k].insert(pointers[1]);
    });
    const Model model = make_problem_model(parse_problem("gemm", "m32n32k32"), 1, 1);
    ASSERT_THAT(scaling_of(model, only(watching)).at(0).times, SizeIs(3));
    EXPECT_THAT(x[128], SizeIs(1));
    EXPECT_GT(w[128].size(), 3u) << "a cache holds several";
}

TEST(SizeScaling, CachesRotateAsWeightsDo) {
    std::map<std::int64_t, std::set<void*>> keys, out;
    Provider watching{.name = "watching", .ops = {}};
    watching.ops.push_back(
        Computes<CachedAttention>{.make = [&](const CachedAttention& op, const Step& step, Precision precision) {
            Providers all = make_providers(BackendKind::cpu, {});
            const auto native = std::ranges::find(all, "native", [](const auto& p) { return p->name; });
            const std::shared_ptr<Computation> right = (*native)->make(step, precision);
            return make_computation(
                "watching",
                [&keys, &out, op, right](const Call& call) {
                    keys[op.keys()].insert(call.operands[1]);
                    out[op.keys()].insert(call.operands[4]);
                    right->run(call);
                },
                1, right->workspace_bytes());
        }});
    const Model model = make_problem_model(parse_problem("cached_attention", "b1h2q1k64d8"), 1, 1);
    ASSERT_THAT(scaling_of(model, only(std::move(watching))).at(0).times, SizeIs(3));
    EXPECT_THAT(out[256], SizeIs(1));
    EXPECT_GT(keys[256].size(), 3u) << "a step reads them from memory";
}

TEST(SizeScaling, LengthsDifferWhereItIsVerifiedAndAreFullWhereItIsTimed) {
    std::vector<std::vector<std::int32_t>> seen;
    Provider masks{.name = "masks", .ops = {}};
    masks.ops.push_back(Computes<TimeMask>{.make = [&](const TimeMask& op, const Step& step, Precision precision) {
        Providers all = make_providers(BackendKind::cpu, {});
        const auto native = std::ranges::find(all, "native", [](const auto& p) { return p->name; });
        const std::shared_ptr<Computation> right = (*native)->make(step, precision);
        return make_computation("masks", [&seen, op, right](const Call& call) {
            OperandCursor in(call.operands);
            void* x = in.next();
            auto* const lengths = in.next<std::int32_t>();
            void* out = in.next();
            if (op.batch == 32) seen.emplace_back(lengths, lengths + op.batch);
            right->run({std::array<void*, 3>{x, lengths, out}, call.workspace, nullptr});
        });
    }});
    const Model model = make_problem_model(parse_problem("time_mask", "n8r16t50"), 1, 1);
    const std::vector<SizeScaling> all = scaling_of(model, only(std::move(masks)));
    ASSERT_THAT(all, SizeIs(1));
    ASSERT_EQ(all[0].unavailable, "");
    ASSERT_GT(seen.size(), 6u);
    EXPECT_THAT(seen[0], testing::Contains(testing::Lt(50)));
    for (std::size_t run = 1; run < seen.size(); ++run) EXPECT_THAT(seen[run], Each(50));
}

}  // namespace
}  // namespace kbench
