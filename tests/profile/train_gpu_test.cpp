// Training on the GPU that is here: captured steps learn in every precision, as the CPU's do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>

#include "bench/device/device.h"
#include "models/problem.h"
#include "tests/bench/accumulating_steps.h"
#include "tests/bench/small_training.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

class GpuTrain : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
        device_ = make_cuda_device();
    }
    /// Heads of 64 columns, as GPT-2's.
    static TrainingSetting setting(Precision precision) {
        const bool fp16 = precision == Precision::fp16;
        return {.precision = precision,
                .master = size_of(storage_type(precision)) == 2,
                .train = {.lr = 3e-3, .loss_scale = fp16 ? 65536.0 : 1, .dynamic_scale = fp16},
                .width = 128,
                .layers = 2,
                .batch = 16,
                .seq = 64};
    }

    std::unique_ptr<Device> device_;
    TemporaryDirectory directory_;
};

TEST_F(GpuTrain, LearnsASourceNearlyToItsEntropyInEveryPrecision) {
    for (const Precision precision : all_precisions) {
        SmallTraining run(*device_, setting(precision));
        EXPECT_NEAR(run.step().loss, std::log(static_cast<double>(SmallTraining::vocab)), 0.2) << name(precision);
        const double loss = run.loss_after(150);
        EXPECT_LT(loss, run.entropy() + 0.3) << name(precision);
        EXPECT_GT(loss, run.entropy() - 0.1) << name(precision);
    }
}

TEST_F(GpuTrain, HasTheCpusLossesInFp64) {
    const std::unique_ptr<Device> cpu = make_cpu_device();
    SmallTraining here(*device_, setting(Precision::fp64)), there(*cpu, setting(Precision::fp64));
    for (int step = 0; step < 20; ++step) {
        const TrainedStep gpu = here.step(), host = there.step();
        EXPECT_NEAR(gpu.loss, host.loss, 1e-6) << step;
        EXPECT_NEAR(gpu.norm, host.norm, 1e-6) << step;
    }
}

TEST_F(GpuTrain, DeterministicPlansLeaveTheSameBits) {
    for (const Precision precision : all_precisions) {
        TrainingSetting asked = setting(precision);
        asked.deterministic = true;
        // 64 columns and a sum over 16384 rows: a weight's gradient that libraries like to split.
        asked.width = 64, asked.batch = 64, asked.seq = 256;
        SmallTraining one(*device_, asked), other(*device_, asked);
        for (int step = 0; step < 5; ++step) {
            EXPECT_EQ(one.step().loss, other.step().loss) << name(precision) << ", step " << step;
            EXPECT_TRUE(one.gradients() == other.gradients()) << name(precision) << ", step " << step;
        }
        EXPECT_TRUE(one.weights() == other.weights()) << name(precision);
    }
}

TEST_F(GpuTrain, EveryProviderAddsToGradientsThatAreThere) { verify_accumulating_steps(*device_); }

/// At GPT-2's widths and at odd numbers of rows; what cuBLASLt has no kernel for is computed apart.
TEST_F(GpuTrain, WhatGoesAlongWithProductsIsRightInEveryPrecision) {
    const Providers providers = make_providers(BackendKind::cuda, {});
    std::vector<Step> steps;
    for (const char* shape : {"m4096n5120k1280", "m1024n3840k1280", "m1024n1280k5120", "m333n768k3072", "m17n128k64"}) {
        const std::string gemm = shape;
        steps.push_back(parse_problem("gemm", gemm + "+bias", Direction::wgrad));
        steps.push_back(parse_problem("gemm", gemm + "+gelu", Direction::dgrad));
        steps.push_back(parse_problem("gemm", gemm + "+bias+gelu"));
        steps.back().kept = {1};
        steps.push_back(steps.back());
        steps.back().weights_change = true;  // so that no copy of the weight is read
    }
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::tf32, Precision::fp32}) {
        int computed = 0;
        for (const Step& step : steps) {
            SCOPED_TRACE(testing::Message()
                         << name(step.direction) << " " << shape_text(step) << " " << name(precision));
            const Provider& cublaslt = **std::ranges::find(providers, "cublaslt", &Provider::name);
            if (!cublaslt.unsupported(step, precision).empty()) continue;
            const auto computation = cublaslt.make(step, precision);
            EXPECT_NO_THROW(verify_step({&step, computation.get(), "cublaslt", "layer"}, precision, *device_, 1));
            ++computed;
        }
        RecordProperty(std::string(name(precision)), computed);
        if (size_of(storage_type(precision)) == 2) {
            EXPECT_GE(computed, 4 * 4) << name(precision);
        }
    }
}

TEST_F(GpuTrain, AStepOfSeveralBatchesIsThatOfTheirSequencesAtOnce) {
    for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::bf16}) {
        TrainingSetting at_once = setting(precision), parts = at_once;
        parts.batch = at_once.batch / 4;
        parts.train.micro_batches = 4;
        SmallTraining whole(*device_, at_once), apart(*device_, parts);
        const double allowed = precision == Precision::fp64 ? 1e-9 : precision == Precision::fp32 ? 1e-3 : 0.05;
        for (int step = 0; step < 5; ++step) {
            const TrainedStep one = whole.step(), other = apart.step();
            EXPECT_NEAR(one.loss, other.loss, allowed) << name(precision) << ", step " << step;
            EXPECT_NEAR(one.norm, other.norm, allowed) << name(precision) << ", step " << step;
        }
    }
}

TEST_F(GpuTrain, MakingReadyChangesNoWeight) {
    const std::unique_ptr<Device> cpu = make_cpu_device();
    const auto saved = [&](Device& device, const char* name) {
        SmallTraining(device, setting(Precision::fp32)).trainer().save(directory_ / name);
        std::stringstream text;
        text << std::ifstream(directory_ / name, std::ios::binary).rdbuf();
        return text.str();
    };
    EXPECT_TRUE(saved(*device_, "gpu") == saved(*cpu, "cpu"));
}

TEST_F(GpuTrain, AStepWhoseGradientsAreNotFiniteIsSkippedAndTheLossScaleHalved) {
    TrainingSetting fp16 = setting(Precision::fp16);
    fp16.train.loss_scale = 0x1p40;
    SmallTraining run(*device_, fp16);
    const std::vector<std::byte> before = run.weights();
    int skipped = 0;
    TrainedStep step;
    while ((step = run.step()).skipped) {
        EXPECT_EQ(step.loss_scale, std::ldexp(0x1p40, -skipped));
        ASSERT_EQ(run.weights(), before);
        ASSERT_LT(++skipped, 40);
    }
    EXPECT_GT(skipped, 5);
    EXPECT_NE(run.weights(), before);
}

TEST_F(GpuTrain, GoingOnEqualsNeverHavingStopped) {
    for (const Precision precision : all_precisions) {
        TrainingSetting asked = setting(precision);
        asked.deterministic = true;
        asked.train.warmup = 5;
        SmallTraining whole(*device_, asked);
        for (int step = 0; step < 3; ++step) whole.step();
        whole.trainer().save(directory_ / "three.safetensors");
        SmallTraining rest(*device_, asked, directory_ / "three.safetensors");
        ASSERT_TRUE(rest.goes_on());
        for (int step = 0; step < 3; ++step) rest.leave_out_a_batch();
        for (int step = 0; step < 3; ++step) EXPECT_EQ(rest.step().loss, whole.step().loss) << name(precision);
        EXPECT_TRUE(rest.weights() == whole.weights()) << name(precision);
    }
}

TEST_F(GpuTrain, GoesOnFromItsFile) {
    for (const Precision precision : {Precision::bf16, Precision::fp32}) {
        SmallTraining run(*device_, setting(precision));
        for (int step = 0; step < 5; ++step) run.step();
        run.trainer().save(directory_ / "w.safetensors");
        SmallTraining next(*device_, setting(precision), directory_ / "w.safetensors");
        EXPECT_EQ(next.weights(), run.weights()) << name(precision);
        for (int step = 0; step < 5; ++step) next.leave_out_a_batch();
        // Another GEMM algorithm may have been measured to be the fastest.
        EXPECT_NEAR(next.step().loss, run.step().loss, precision == Precision::bf16 ? 0.01 : 1e-5);
    }
}

}  // namespace
}  // namespace kbench
