// FLOPs by precision and unit, as counted.
#include "analysis/facts/executed_flops.h"

#include <gtest/gtest.h>

#include "tests/analysis/facts/counted.h"

namespace kbench {
namespace {

Counters counted(Counted counters) {
    StepResult step;
    step.counters = std::move(counters);
    return counters_of(step);
}

TEST(Executed, PlainFlopsWeighEachInstruction) {
    const Counters counters = counted(plain);
    EXPECT_EQ(plain_flops(counters, Precision::fp32), 1 + 20 + 2 * 300.0);
    EXPECT_EQ(plain_flops(counters, Precision::fp64), 1e3 + 2e4 + 2 * 3e5);
    EXPECT_EQ(plain_flops(counters, Precision::fp16), 2e6 + 4e7 + 4 * 3e8) << "packed pairs";
    EXPECT_EQ(plain_flops(counters, Precision::bf16), plain_flops(counters, Precision::fp16))
        << "the same instructions";
    EXPECT_EQ(plain_flops(counters, Precision::tf32), std::nullopt);
}

TEST(Executed, PackedFp32CountsWhereAChipHasIt) {
    const Counters counters = counted(both(plain, {{"sass_fadd2", 1e4}, {"sass_fmul2", 1e5}, {"sass_ffma2", 1e6}}));
    EXPECT_EQ(plain_flops(counters, Precision::fp32), 621 + 2e4 + 2e5 + 4e6);
}

TEST(Executed, AMissingCounterIsNotZero) {
    for (const auto& [name, value] : plain) {
        Counted fewer = both(plain, no_tensor_ops);
        fewer.erase(name);
        EXPECT_EQ(executed_flops(counted(fewer)), std::nullopt) << name;
    }
    EXPECT_EQ(plain_flops(counted({}), Precision::fp32), std::nullopt);
    EXPECT_EQ(tensor_flops(counted({}), Precision::fp16), std::nullopt);
    EXPECT_EQ(executed_flops(counted(plain)), std::nullopt) << "no tensor cores";
    EXPECT_EQ(executed_flops(counted(no_tensor_ops)), std::nullopt) << "no plain cores";
}

TEST(Executed, AllFlopsAreTheSumOfTheirKinds) {
    Counted all = plain;
    all["tensor_fp16_ops"] = 1e12;
    all["tensor_bf16_ops"] = 2e12;
    all["tensor_tf32_ops"] = 4e12;
    all["tensor_fp64_ops"] = 8e12;
    const Counters counters = counted(all);
    EXPECT_EQ(executed_flops(counters, Precision::bf16), 2e12);
    EXPECT_EQ(executed_flops(counters, Precision::fp64), 8e12 + 621000);
    double sum = plain_flops(counters, Precision::fp16).value();
    for (const Precision precision : all_precisions) sum += executed_flops(counters, precision).value();
    EXPECT_EQ(executed_flops(counters), sum);
}

}  // namespace
}  // namespace kbench
