// Which steps around convolutions and recurrent layers provider `native` takes on a GPU, as its table says; no device.
#ifdef KBENCH_HAVE_CUDA
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/plan/fuse.h"
#include "bench/plan/provider.h"
#include "models/problem.h"

namespace kbench {
namespace {

class NativeOnGpu : public testing::Test {
  protected:
    std::string refusal(const Step& step, Precision precision) const { return native_->unsupported(step, precision); }
    Providers providers_ = make_providers(BackendKind::cuda, {});
    Provider* native_ =
        std::ranges::find(providers_, "native", [](const auto& provider) { return provider->name; }) -> get();
};

TEST_F(NativeOnGpu, TakesWhatStandsAroundConvolutionsInEveryPrecision) {
    const std::pair<const char*, const char*> problems[] = {
        {"batchnorm", "r4000w1024"}, {"batchnorm", "r4000w1024+residual"}, {"batchnorm", "r20736w500c32h81"},
        {"hardtanh", "r10000w500"},  {"time_mask", "n8r2592t500f2"},       {"to_sequence", "n8f1312t500"}};
    for (const auto& [op, shape] : problems)
        for (const Precision precision : all_precisions)
            EXPECT_EQ(refusal(parse_problem(op, shape), precision), "") << op << " " << shape;
}

TEST_F(NativeOnGpu, TakesTheirTrainingAndTheirBackwardInEveryPrecision) {
    for (const Precision precision : all_precisions) {
        for (const char* shape : {"r4000w1024t", "r20736w500c32h81t"})
            EXPECT_EQ(refusal(parse_problem("batchnorm", shape), precision), "") << shape;
        const std::pair<const char*, const char*> problems[] = {{"batchnorm", "r4000w1024t"},
                                                                {"batchnorm", "r20736w500c32h81ta"},
                                                                {"hardtanh", "r10000w500"},
                                                                {"time_mask", "n8r2592t500f2"},
                                                                {"to_sequence", "n8f1312t500"}};
        for (const auto& [op, shape] : problems)
            EXPECT_EQ(refusal(parse_problem(op, shape, Direction::bwd), precision), "") << op << " " << shape;
    }
}

TEST_F(NativeOnGpu, AddsAResidualOnlyWhereChannelsAreColumnsAndNobodyReadsTheSum) {
    EXPECT_NE(refusal(parse_problem("batchnorm", "r20736w500c32h81+residual"), Precision::fp16), "");
    Step kept = parse_problem("batchnorm", "r4000w1024+residual");
    kept.kept = {0};
    EXPECT_NE(refusal(kept, Precision::fp16), "");
}

TEST_F(NativeOnGpu, TheSumOfTwoDirectionsAndItsNormAreOneStep) {
    const auto steps = [&](const char* shape) {
        const Model model = make_problem_model(parse_problem("batchnorm", shape), 1, 1);
        return assign_steps(model, Precision::fp16, providers_, {}, 1);
    };
    const auto one = steps("r4000w1024+residual");
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(one.front().provider, native_);
    EXPECT_EQ(one.front().step, parse_problem("batchnorm", "r4000w1024+residual"));
    EXPECT_EQ(steps("r20736w500c32h81+residual").size(), 2u);
}

}  // namespace
}  // namespace kbench
#endif
