// Time against size on the GPU that is here: products keep their algorithm, and take longer by what they sum up more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/measure/point/measure.h"
#include "bench/measure/sweep/planning.h"
#include "bench/plan/provider.h"
#include "bench/profile/profiler.h"
#include "models/gpt2.h"
#include "models/problem.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class GpuSizeScaling : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
        device_ = make_cuda_device();
        profiler_ = make_profiler(*device_);
    }

    Point measured(const Model& model, Precision precision, const ProviderChoice& choice = {}) {
        PointOptions options;
        options.sampler.time_budget_s = 0.5;
        options.sampler.warm_up_s = options.sampler.min_time_s = 0.2;
        options.marginal_s = options.sm_scaling_s = 0;
        const Providers providers =
            make_providers(BackendKind::cuda, {.algorithm_cache = directory_ / "algorithms.json"});
        Point point;
        Plan plan = plan_point(model, assign_steps(model, precision, providers, choice, 8), *device_, point, {});
        RandomWeights weights(1);
        std::vector<std::string> warnings;
        measure({.plan = plan,
                 .device = *device_,
                 .profiler = *profiler_,
                 .options = options,
                 .weights = weights,
                 .point = point,
                 .warnings = warnings});
        std::cout << "size_scaling took " << point.phase_seconds["size_scaling"] << " s\n";
        for (const SizeScaling& scaling : point.size_scaling) {
            std::cout << scaling.steps.size() << " steps, " << scaling.axis << ' ' << scaling.unavailable << '\n';
            for (const SizeTime& time : scaling.times)
                std::cout << "  " << time.shape << "  " << time.us.median << " us (" << time.us.ci_low << " to "
                          << time.us.ci_high << ", n " << time.us.n << ")  " << time.sm_clock_mhz.value.value_or(0)
                          << " MHz " << time.sm_clock_mhz.reason << "  " << time.implementation << '\n';
        }
        return point;
    }

    std::unique_ptr<Device> device_;
    std::unique_ptr<Profiler> profiler_;
    TemporaryDirectory directory_;
};

TEST_F(GpuSizeScaling, ProductsKeepTheirAlgorithmAtTwiceAndFourTimesTheSum) {
    Gpt2Config config{"two layers", 1280, 2, 20};
    config.vocab_size = 4099;
    for (const Precision precision : {Precision::fp16, Precision::tf32, Precision::fp32}) {
        SCOPED_TRACE(name(precision));
        const Point point = measured(make_gpt2(config, 1, 1024, AttentionKind::fused), precision);
        std::size_t products = 0;
        for (const SizeScaling& scaling : point.size_scaling) {
            if (scaling.axis != "k") continue;
            ++products;
            ASSERT_EQ(scaling.unavailable, "");
            ASSERT_THAT(scaling.times, SizeIs(3));
            for (const SizeTime& time : scaling.times) {
                EXPECT_EQ(time.implementation, scaling.times[0].implementation);
                EXPECT_THAT(time.implementation, HasSubstr("cublasLt algo "));
                ASSERT_TRUE(time.sm_clock_mhz.value) << time.sm_clock_mhz.reason;
                EXPECT_GT(*time.sm_clock_mhz.value, 500);
                EXPECT_LT(*time.sm_clock_mhz.value, 3000);
            }
            // Twice the sum is at most twice the time, and most of it.
            EXPECT_GT(scaling.times[1].us.median, 1.2 * scaling.times[0].us.median);
            EXPECT_LT(scaling.times[1].us.median, 2.2 * scaling.times[0].us.median);
            EXPECT_GT(scaling.times[2].us.median, 1.2 * scaling.times[1].us.median);
        }
        EXPECT_GE(products, 4u) << "c_attn, attn.c_proj, c_fc, mlp.c_proj";
    }
}

TEST_F(GpuSizeScaling, ByItselfAProductTakesAboutWhatItTakesInTheModel) {
    Gpt2Config config{"two layers", 1280, 2, 20};
    config.vocab_size = 4099;
    const Point point = measured(make_gpt2(config, 1, 1024, AttentionKind::fused), Precision::fp16);
    for (const SizeScaling& scaling : point.size_scaling) {
        if (scaling.times.empty()) continue;
        const double in_model = point.steps[static_cast<std::size_t>(scaling.steps[0])].device_us().value();
        EXPECT_GT(scaling.times[0].us.median, 0.6 * in_model) << scaling.times[0].shape;
        EXPECT_LT(scaling.times[0].us.median, 1.6 * in_model) << scaling.times[0].shape;
    }
}

TEST_F(GpuSizeScaling, CublasWhichChoosesByTheSizesIsRefused) {
    const Model model = make_problem_model(parse_problem("gemm", "m512n512k512"), 1, 4);
    const Point point = measured(model, Precision::fp16, {{"gemm", "cublas"}});
    ASSERT_THAT(point.size_scaling, SizeIs(1));
    EXPECT_THAT(point.size_scaling[0].unavailable, HasSubstr("cuBLAS chooses an algorithm by the sizes"));
}

}  // namespace
}  // namespace kbench
