// Sums of steps by op kind and by layer, of steps whose figures are known.
#include "analysis/explain/step_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// One that does a MFLOP and moves a kilobyte a microsecond of `us`.
StepResult timed_step(const char* layer, const char* op, const char* provider, double us) {
    StepResult step;
    step.layer = layer;
    step.op = op;
    step.provider = provider;
    step.implementation = std::string(provider) + "'s";
    step.absorbs = {step.layer + ":" + step.op};
    step.cost.flops = us * 1e6;
    step.cost.bytes_read[0] = us * 1e3;
    step.time_us.emplace().median = us;
    return step;
}

Point two_blocks() {
    Point point;
    point.steps = {timed_step("h.0.attn", "gemm", "cublaslt", 30), timed_step("h.0.ln", "layernorm", "native", 45),
                   timed_step("h.1.attn", "gemm", "cublaslt", 20), timed_step("h.1.attn", "gemm", "native", 5)};
    return point;
}

TEST(StepSums, SumsAKindByProviderTheSlowestFirst) {
    const StepSums sums = by_op_kind(two_blocks());
    EXPECT_DOUBLE_EQ(sums.time_us, 100);
    ASSERT_EQ(sums.groups.size(), 3u);
    const StepGroup& products = sums.groups[0];
    EXPECT_EQ(products.name, "gemm");
    EXPECT_THAT(products.providers, ElementsAre("cublaslt"));
    EXPECT_EQ(products.steps, 2u);
    EXPECT_DOUBLE_EQ(products.time_us, 50);
    EXPECT_DOUBLE_EQ(products.flops, 50e6);
    EXPECT_DOUBLE_EQ(products.bytes, 50e3);
    EXPECT_DOUBLE_EQ(products.share, 0.5);
    EXPECT_EQ(sums.groups[1].name, "layernorm");
    EXPECT_THAT(sums.groups[2].providers, ElementsAre("native"));
    EXPECT_DOUBLE_EQ(sums.groups[2].share, 0.05);
}

TEST(StepSums, SumsALayerOfAllBlocksWhoeverComputesIt) {
    Point point = two_blocks();
    point.steps[3].absorbs.emplace_back("h.1.attn:bias");
    point.steps[3].absorbs.emplace_back("h.1:residual");
    const StepSums sums = by_layer(point);
    ASSERT_EQ(sums.groups.size(), 2u);
    const StepGroup& attention = sums.groups[0];
    EXPECT_EQ(attention.name, "h.*.attn");
    EXPECT_EQ(attention.steps, 3u);
    EXPECT_THAT(attention.providers, ElementsAre("cublaslt", "native"));
    EXPECT_THAT(attention.implementations, ElementsAre("cublaslt's", "native's"));
    EXPECT_THAT(attention.ops, ElementsAre("gemm", "bias", "residual")) << "of all ops that it computes, each once";
    EXPECT_EQ(sums.groups[1].name, "h.*.ln");
}

TEST(StepSums, CountsStepsWithoutATimeAndSumsNothingOfThem) {
    Point point = two_blocks();
    for (const std::size_t untimed : {0u, 1u}) point.steps[untimed].time_us.reset();
    const StepSums sums = by_layer(point);
    EXPECT_EQ(sums.untimed_steps, 2u);
    ASSERT_EQ(sums.groups.size(), 1u);
    EXPECT_DOUBLE_EQ(sums.groups[0].flops, 25e6);
    EXPECT_DOUBLE_EQ(sums.groups[0].share, 1);
    for (StepResult& step : point.steps) step.time_us.reset();
    EXPECT_THAT(by_op_kind(point).groups, IsEmpty());
}

TEST(StepSums, RatesAreWorkOverTimeAndZeroWithoutOne) {
    StepGroup group;
    group.flops = 6e6;
    group.bytes = 3e3;
    EXPECT_EQ(group.tflop_per_s(), 0);
    EXPECT_EQ(group.gb_per_s(), 0);
    group.time_us = 0.5;
    EXPECT_DOUBLE_EQ(group.tflop_per_s(), 12);
    EXPECT_DOUBLE_EQ(group.gb_per_s(), 6);
}

}  // namespace
}  // namespace kbench
