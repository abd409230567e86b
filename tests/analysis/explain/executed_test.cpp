// What counters say against what was asked for.
#include "analysis/explain/executed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/facts/counted.h"

namespace kbench {
namespace {

StepResult counted(Precision precision, Counted counters, double matrix_flops = 0) {
    StepResult step;
    step.precision = precision;
    step.counters = std::move(counters);
    step.matrix_flops = matrix_flops;
    return step;
}

std::string mismatch(const StepResult& step) { return executed_mismatch(step).value_or("none"); }

TEST(TensorCores, AreUsedWhereAnyCounterSaysSo) {
    const auto used = [](const Counted& counters) { return tensor_cores_used(counted(Precision::fp16, counters)); };
    EXPECT_EQ(used({{"tensor_tf32_ops", 5}}), true) << "the other types need not be counted";
    EXPECT_EQ(used({{"tensor_pipe_active", 5}}), true);
    EXPECT_EQ(used({{"tensor_pipe_active", 0.5}}), std::nullopt) << "may be moves of constants";
    EXPECT_EQ(used({{"tensor_pipe_active", 0.5}, {"tensor_fp16_ops", 0}}), false);
    EXPECT_EQ(used({{"tensor_pipe_active", 0}, {"tcgen05_inst", 9}}), true) << "a pipe of its own";
}

TEST(TensorCores, AreUnusedOnlyWhereThatWasCounted) {
    const auto used = [](const Counted& counters) { return tensor_cores_used(counted(Precision::fp16, counters)); };
    EXPECT_EQ(used(no_tensor_ops), false);
    EXPECT_EQ(used({{"tensor_pipe_active", 0}}), false);
    EXPECT_EQ(used({}), std::nullopt);
    EXPECT_EQ(used({{"tensor_fp16_ops", 0}}), std::nullopt) << "there are other types";
}

TEST(TensorCores, AreNeverGuessedFromAName) {
    StepResult step = counted(Precision::fp16, {});
    step.implementation = "sm90_xmma_gemm_f16f16_tensor16x8x16";
    step.kernels.resize(1);
    step.kernels[0].name = step.kernels[0].short_name = "hmma_gemm";
    EXPECT_EQ(tensor_cores_used(step), std::nullopt);
}

TEST(Mismatch, Fp32MustLeaveTensorCoresAlone) {
    EXPECT_EQ(mismatch(counted(Precision::fp32, {{"tensor_tf32_ops", 2.7e9}})),
              "asked for fp32, but tensor cores were active (tf32: 2.70 GFLOP)");
    EXPECT_EQ(mismatch(counted(Precision::fp32, {{"tensor_pipe_active", 31}})),
              "asked for fp32, but tensor cores were active (inputs not counted by type)");
    EXPECT_EQ(mismatch(counted(Precision::fp32, both(plain, no_tensor_ops), 620)), "none");
}

struct Asked {
    Precision precision;
    const char *own, *foreign;
};
class OnTensorCores : public testing::TestWithParam<Asked> {};

TEST_P(OnTensorCores, AnotherTypeIsAMismatchAndTheirOwnIsNot) {
    const auto& [precision, own, foreign] = GetParam();
    EXPECT_EQ(mismatch(counted(precision, both({{own, 1e9}}, both(plain, no_tensor_ops)), 1e9)), "none");
    EXPECT_THAT(mismatch(counted(precision, both({{own, 1e9}, {foreign, 5}}, no_tensor_ops), 1e9)),
                testing::HasSubstr("tensor cores were active ("));
}

TEST_P(OnTensorCores, MatricesOnPlainCoresAreAMismatch) {
    const Precision precision = GetParam().precision;
    EXPECT_EQ(mismatch(counted(precision, {{"tensor_pipe_active", 0}}, 1e9)),
              "asked for " + std::string(name(precision)) + ", but ran on plain cores");
    EXPECT_EQ(mismatch(counted(precision, {{"tensor_pipe_active", 0}})), "none") << "no matrices, no tensor cores";
    EXPECT_EQ(mismatch(counted(precision, {}, 1e9)), "none") << "nothing counted";
}

INSTANTIATE_TEST_SUITE_P(Precisions, OnTensorCores,
                         testing::Values(Asked{Precision::fp16, "tensor_fp16_ops", "tensor_bf16_ops"},
                                         Asked{Precision::fp16, "tensor_fp16_ops", "tensor_tf32_ops"},
                                         Asked{Precision::bf16, "tensor_bf16_ops", "tensor_fp16_ops"},
                                         Asked{Precision::bf16, "tensor_bf16_ops", "tensor_tf32_ops"},
                                         Asked{Precision::tf32, "tensor_tf32_ops", "tensor_fp16_ops"},
                                         Asked{Precision::tf32, "tensor_tf32_ops", "tensor_bf16_ops"}));

/// A step of an op whose products need 2.7 GFLOP.
StepResult product_step(std::string op, Precision precision, Counted counters) {
    StepResult step = counted(precision, both(std::move(counters), no_tensor_ops), 2.7e9);
    step.op = std::move(op);
    step.provider = "native";
    step.cost.flops = 2.8e9;
    return step;
}

TEST(Products, OfAnotherPrecisionAreFoundOutInEveryOp) {
    for (const char* op : {"gemm", "attention", "conv2d", "lstm", "attention_scores"}) {
        SCOPED_TRACE(op);
        const auto of = [op](Precision precision, const Counted& counters) {
            return product_step(op, precision, counters);
        };
        const StepResult fp16_for_fp32 = of(Precision::fp32, {{"tensor_fp16_ops", 2.7e9}});
        EXPECT_EQ(mismatch(fp16_for_fp32), "asked for fp32, but tensor cores were active (fp16: 2.70 GFLOP)");
        EXPECT_EQ(products_proven(fp16_for_fp32), false);
        const StepResult plain_for_fp16 = of(Precision::fp16, {{"tensor_pipe_active", 0}});
        EXPECT_EQ(mismatch(plain_for_fp16), "asked for fp16, but ran on plain cores");
        const StepResult bf16_for_fp16 = of(Precision::fp16, {{"tensor_bf16_ops", 2.7e9}});
        EXPECT_EQ(mismatch(bf16_for_fp16), "asked for fp16, but tensor cores were active (bf16: 2.70 GFLOP)");
        const StepResult right = of(Precision::fp16, {{"tensor_fp16_ops", 2.8e9}});
        EXPECT_EQ(mismatch(right), "none");
        EXPECT_EQ(products_proven(right), true);
    }
}

TEST(Products, OneOfTwoOnPlainCoresIsFoundOut) {
    StepResult step = product_step("attention", Precision::fp16, {{"tensor_fp16_ops", 1.35e9}});
    EXPECT_EQ(mismatch(step), "asked for fp16, but its products need 2.70 GFLOP, and 1.35 GFLOP were fp16");
    EXPECT_EQ(products_proven(step), false);
    step.counters["tensor_fp16_ops"] = 0.99 * 2.7e9;
    EXPECT_EQ(mismatch(step), "none");
    step.counters["tensor_fp16_ops"] = 1.9 * 2.7e9;
    EXPECT_EQ(products_proven(step), true) << "whole tiles on the diagonal are more than the visible pairs";
}

TEST(Products, OnlyTheTypeAskedForNeedBeCounted) {
    StepResult step = counted(Precision::fp16, {{"tensor_fp16_ops", 0}, {"tensor_pipe_active", 60}}, 2.7e9);
    EXPECT_EQ(mismatch(step), "asked for fp16, but its products need 2.70 GFLOP, and 0 FLOP were fp16")
        << "tensor cores worked, in a type that was not counted";
    step.counters["tensor_fp16_ops"] = 2.7e9;
    EXPECT_EQ(products_proven(step), true);
    step.counters.clear();
    EXPECT_EQ(products_proven(step), std::nullopt) << "nothing was counted";
    step.matrix_flops = 0;
    EXPECT_EQ(products_proven(step), std::nullopt) << "it has no products";
}

TEST(Products, OfFp32AreProvenByFfmaOrByIdleTensorCores) {
    Counted ffma = both(no_tensor_ops, plain);
    ffma["sass_ffma"] = 1.4e9;
    StepResult step = product_step("attention", Precision::fp32, ffma);
    EXPECT_EQ(mismatch(step), "none");
    EXPECT_EQ(products_proven(step), true);
    step.counters["sass_ffma"] = 1e6;  // what did it then was packed halves
    EXPECT_EQ(mismatch(step), "asked for fp32, but its products need 2.70 GFLOP, and 2.00 MFLOP were fp32");
    EXPECT_EQ(products_proven(step), false);
    step.counters = {{"tensor_tf32_ops", 0}};
    EXPECT_EQ(products_proven(step), true) << "plain cores were not counted";
}

TEST(Products, NeedWhatIsUsefulOfThemAndNoMore) {
    StepResult step = product_step("conv2d", Precision::fp16, {});
    EXPECT_EQ(least_product_flops(step), 2.7e9);
    step.cost.flops = 2e9;
    EXPECT_EQ(least_product_flops(step), 2e9) << "the rest is padding, which a kernel may skip";
    step.spared_flops = 0.5e9;
    EXPECT_EQ(least_product_flops(step), 1.5e9);
    step.time_steps = 10;
    EXPECT_EQ(least_product_flops(step), 1.35e9) << "the first state is zero";
    step.provider = "cudnn";
    EXPECT_EQ(least_product_flops(step), std::nullopt) << "it may choose an algorithm with fewer";
    step.counters["tensor_fp16_ops"] = 1;
    EXPECT_EQ(mismatch(step), "none");
}

TEST(Mismatch, PackedSixteenBitsOnPlainCoresFitFp16AndBf16) {
    for (const Precision precision : {Precision::fp16, Precision::bf16})
        EXPECT_EQ(mismatch(counted(precision, both(plain, no_tensor_ops))), "none") << name(precision);
}

TEST(Mismatch, Fp64TakesTensorCoresOfItsOwnTypeOnly) {
    EXPECT_EQ(mismatch(counted(Precision::fp64, {{"tensor_fp64_ops", 1e9}}, 1e9)), "none");
    EXPECT_EQ(mismatch(counted(Precision::fp64, {{"tensor_tf32_ops", 4}}, 1e9)),
              "asked for fp64, but tensor cores were active (tf32: 4.00 FLOP)");
}

TEST(Mismatch, Fp64MatricesMustNotBeMostlyFp32) {
    Counted mostly_fp32 = both(plain, no_tensor_ops);
    mostly_fp32["sass_ffma"] = 1e9;
    EXPECT_EQ(mismatch(counted(Precision::fp64, mostly_fp32, 1e9)),
              "asked for fp64, but most FLOPs were fp32 (2.00 GFLOP, not 621 kFLOP)");
    EXPECT_EQ(mismatch(counted(Precision::fp64, mostly_fp32)), "none") << "not a matrix product";
    mostly_fp32["tensor_fp64_ops"] = 3e9;
    EXPECT_EQ(mismatch(counted(Precision::fp64, mostly_fp32, 1e9)), "none");
    mostly_fp32.erase("tensor_fp64_ops");
    EXPECT_EQ(mismatch(counted(Precision::fp64, mostly_fp32, 1e9)), "none") << "cannot be told";
}

}  // namespace
}  // namespace kbench
