// What provider `cudnn` takes and why it refuses the rest. Needs neither a device nor cuDNN's library.
#ifdef KBENCH_HAVE_CUDNN
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/fuse.h"
#include "bench/plan/provider.h"
#include "bench/plan/providers/cuda/cudnn_bench.h"
#include "bench/plan/providers/cuda/cudnn_convolution.h"
#include "bench/plan/providers/cuda/cudnn_handle.h"
#include "bench/plan/providers/cuda/cudnn_library.h"
#include "kbench/error.h"
#include "models/gpt2.h"
#include "models/ops/list.h"
#include "models/problem.h"

namespace kbench {
namespace {

using testing::HasSubstr;

class CudnnProvider : public testing::Test {
  protected:
    std::string refusal(const Step& step, Precision precision) const { return cudnn_->unsupported(step, precision); }
    /// In which precisions it takes a step; where the library is missing, refuses it for that alone.
    std::string taken(const Step& step) const {
        std::string names;
        for (const Precision precision : all_precisions)
            if (refusal(step, precision) == cudnn_unavailable()) names += fmt::format("{} ", name(precision));
        return names;
    }
    Providers providers_ = make_providers(BackendKind::cuda, {});
    Provider* cudnn_ =
        std::ranges::find(providers_, "cudnn", [](const auto& provider) { return provider->name; }) -> get();
};

TEST_F(CudnnProvider, TakesEachOpInThePrecisionsThatTheLibraryHas) {
    EXPECT_EQ(taken(Step::of(Attention{{1, 20, 1024, 64}, 0.125})), "fp16 bf16 ");
    EXPECT_EQ(taken(Step::of(Attention{{1, 20, 1024, 64}, 0.125, true})), "fp16 bf16 ");
    EXPECT_EQ(taken(Step::of(Attention{{1, 20, 1024, 64}, 0.125}, Direction::bwd)), "fp16 bf16 ");
    const auto of_convolution = [&](Direction direction) {
        return taken(parse_problem("conv2d", "n8c32h81w500k32r21s11u2p10q5b", direction));
    };
    EXPECT_EQ(of_convolution(Direction::fwd), "fp16 bf16 tf32 fp32 ");
    EXPECT_EQ(of_convolution(Direction::dgrad), "fp16 bf16 tf32 fp32 ");
    EXPECT_EQ(of_convolution(Direction::wgrad), "fp16 tf32 fp32 ") << "with the bias' gradient";
    EXPECT_EQ(taken(Step::of(ResidualAdd{1024, 1280})), "");
}

TEST_F(CudnnProvider, SaysWhyItRefuses) {
    EXPECT_EQ(refusal(Step::of(Attention{{1, 20, 1024, 64}, 0.125}), Precision::fp32), "has no attention in fp32");
    EXPECT_EQ(refusal(Step::of(Attention{{1, 20, 1024, 100}, 0.1}), Precision::fp16),
              "head size 100: its attention takes multiples of 8 up to 256");
    EXPECT_EQ(refusal(Step::of(Attention{{1, 20, 1024, 264}, 0.1}), Precision::bf16),
              "head size 264: its attention takes multiples of 8 up to 256");
    EXPECT_EQ(refusal(parse_problem("conv2d", "n2048c1024h32w32k4r1s1"), Precision::fp16),
              "2147483648 elements: its convolutions take less than 2^31");
    for (const Direction direction : {Direction::dgrad, Direction::wgrad})
        EXPECT_EQ(refusal(parse_problem("conv2d", "n2048c1024h32w32k4r1s1", direction), Precision::fp16),
                  "2147483648 elements: its convolutions take less than 2^31");
    EXPECT_EQ(refusal(parse_problem("conv2d", "n2c3h5w7k4r1s1ba", Direction::wgrad), Precision::fp32),
              "its conv2d wgrad cannot add to what is there");
    EXPECT_EQ(refusal(Step::of(Gemm{64, 64, 64}), Precision::fp16), "has no gemm");
    EXPECT_EQ(refusal(Step::of(ScaleMask{{1, 20, 1024, 64}, 0.125, false}), Precision::fp16), "has no scale_mask");
}

TEST_F(CudnnProvider, AStepThatIsRefusedIsNotMade) {
    EXPECT_THROW(cudnn_->make(Step::of(Gemm{64, 64, 64}), Precision::fp16), Unsupported);
}

TEST_F(CudnnProvider, AModelTakesItOnlyOnRequest) {
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;
    const Model model = make_gpt2(config, 2, 8, AttentionKind::fused);
    for (const AssignedStep& s : assign_steps(model, Precision::fp16, providers_, {}, 64))
        EXPECT_NE(s.provider->name, "cudnn");
    if (!cudnn_unavailable().empty()) GTEST_SKIP() << cudnn_unavailable();
    int attentions = 0;
    for (const AssignedStep& s : assign_steps(model, Precision::fp16, providers_, {{"attention", "cudnn"}}, 64)) {
        const bool attention = s.step.head_op().is<Attention>();
        attentions += attention ? 1 : 0;
        EXPECT_EQ(s.provider->name == "cudnn", attention);
    }
    EXPECT_EQ(attentions, 2);
}

TEST_F(CudnnProvider, TheLibraryHasAVersionWhereItIs) {
    EXPECT_EQ(cudnn_version().empty(), !cudnn_unavailable().empty());
    EXPECT_THAT(cudnn_unavailable().empty() ? cudnn_version() : "9.", testing::StartsWith("9."));
    EXPECT_THAT(cudnn_unavailable().empty() ? "libcudnn" : cudnn_unavailable(), HasSubstr("libcudnn"));
}

Conv2d convolution(const char* shape) { return parse_problem("conv2d", shape).as<Conv2d>(); }

/// A forward's text is the key under which plans were remembered before gradients had any.
TEST(CudnnConvolutionProblem, PlansAreRememberedByDirection) {
    const Conv2d op = convolution("n8c32h81w500k32r21s11u2p10q5b");
    EXPECT_EQ((cudnn::ConvolutionProblem{op}.text()), "conv2d n8c32h81w500k32r21s11u2p10q5b");
    EXPECT_EQ((cudnn::ConvolutionProblem{op, Direction::wgrad}.text()), "conv2d wgrad n8c32h81w500k32r21s11u2p10q5b");
    EXPECT_EQ((cudnn::ConvolutionProblem{op, Direction::dgrad}.text()), "conv2d dgrad n8c32h81w500k32r21s11u2p10q5");
    EXPECT_EQ((cudnn::ConvolutionProblem{convolution("n8c32h81w500k32r21s11u2p10q5a"), Direction::dgrad}.text()),
              "conv2d dgrad n8c32h81w500k32r21s11u2p10q5");
}

TEST(CudnnConvolutionProblem, RoundingExplainsMoreOfLongerSums) {
    const Conv2d op = convolution("n8c32h81w500k48r21s11u2v3p10q5");
    EXPECT_EQ(cudnn::terms(op, Direction::fwd), 32 * 21 * 11);
    EXPECT_EQ(cudnn::terms(op, Direction::dgrad), 48 * 11 * 4);  // strides skip taps: of 21 every second, of 11 a third
    EXPECT_EQ(cudnn::terms(op, Direction::wgrad), 8 * 41 * 167);
    const auto allowance = [&](Direction direction, Precision precision) {
        return cudnn::allowance({op, direction, precision});
    };
    EXPECT_GT(allowance(Direction::wgrad, Precision::fp32), allowance(Direction::fwd, Precision::fp32));
    EXPECT_GT(allowance(Direction::fwd, Precision::fp32), allowance(Direction::dgrad, Precision::fp32));
    for (const Direction direction : {Direction::fwd, Direction::dgrad, Direction::wgrad})
        EXPECT_LT(allowance(direction, Precision::fp64), 1e-9) << name(direction);
}

TEST(CudnnConvolutionProblem, WhatCudnnComputesWronglyOrNotAtAllIsRefused) {
    const auto refusal = [](const char* shape, Direction direction, Precision precision) {
        return cudnn::convolution_refusal({convolution(shape), direction, precision});
    };
    constexpr const char* odd = "n2c1h41w61k32r11s7u2v2p5q3";  // rows of 31 numbers
    constexpr const char* biased = "n8c32h81w500k32r21s11u2p10q5b";
    for (const Direction direction : {Direction::fwd, Direction::dgrad, Direction::wgrad}) {
        EXPECT_THAT(refusal(odd, direction, Precision::fp64), HasSubstr("not for fp64"));
        EXPECT_EQ(refusal(odd, direction, Precision::fp32), "");
        EXPECT_EQ(refusal(biased, direction, Precision::tf32), "");
    }
    EXPECT_THAT(refusal(odd, Direction::fwd, Precision::tf32), HasSubstr("rows of 31 numbers"));
    EXPECT_EQ(refusal(odd, Direction::dgrad, Precision::tf32), "");
    EXPECT_THAT(refusal(biased, Direction::wgrad, Precision::bf16), HasSubstr("no bf16"));
    EXPECT_EQ(refusal(odd, Direction::wgrad, Precision::bf16), "") << "without a bias";
    EXPECT_EQ(refusal(biased, Direction::fwd, Precision::bf16), "");
}

/// On a GPU: a small convolution of odd sizes, with a bias, and one of one channel; the gradients of each.
class CudnnConvolution : public testing::TestWithParam<std::tuple<const char*, Direction>> {
  protected:
    void SetUp() override {
        if (const std::string why = cuda_unavailable(); !why.empty()) GTEST_SKIP() << why;
        if (!cudnn_unavailable().empty()) GTEST_SKIP() << cudnn_unavailable();
        handle_ = cudnn::make_handle();
    }
    cudnn::ConvolutionProblem problem(Precision precision) const {
        return {convolution(std::get<0>(GetParam())), std::get<1>(GetParam()), precision};
    }
    std::string what() const {
        const auto [shape, direction] = GetParam();
        return direction == Direction::fwd ? "cudnn conv2d, " : fmt::format("cudnn conv2d {}, ", name(direction));
    }
    cudnn::Handle handle_;
};

TEST_P(CudnnConvolution, TheFastestPlanComesFirstAndIsMadeByItsName) {
    for (const Precision precision : all_precisions) {
        SCOPED_TRACE(name(precision));
        if (!cudnn::convolution_refusal(problem(precision)).empty()) {
            EXPECT_THROW(cudnn::time_convolution(problem(precision), handle_), Unsupported);
            continue;
        }
        const std::vector<cudnn::ConvolutionPlan> plans = cudnn::time_convolution(problem(precision), handle_);
        ASSERT_FALSE(plans.empty());
        ASSERT_EQ(plans.front().why_not, "");
        double last_us = 0;
        bool refused = false;
        for (const cudnn::ConvolutionPlan& plan : plans) {
            refused = refused || !plan.why_not.empty();
            EXPECT_EQ(plan.why_not.empty(), !refused) << plan.name;
            if (refused) continue;
            EXPECT_GE(plan.median_us, last_us) << plan.name;
            last_us = plan.median_us;
        }
        const auto made = cudnn::make_convolution(problem(precision), handle_, plans.front().name, false);
        EXPECT_EQ(made->implementation(), what() + plans.front().name);
        EXPECT_LE(made->workspace_bytes(), static_cast<std::size_t>(cudnn::convolution_workspace_bytes));
    }
}

/// Any of the outputs: here what is left unwritten.
TEST_P(CudnnConvolution, AnOutputThatIsMissingIsFound) {
    cudnn::Bench bench(problem(Precision::fp32));
    const auto right = cudnn::make_convolution(problem(Precision::fp32), handle_, "", true);
    bench.expect(*right);
    bench.run(*right);
    EXPECT_LE(bench.largest_difference(), cudnn::allowance(problem(Precision::fp32)));
    const auto nothing = make_computation("nothing", [](const Call&) {});
    bench.run(*nothing);
    EXPECT_EQ(bench.largest_difference(), std::numeric_limits<double>::infinity());
}

TEST_P(CudnnConvolution, WithoutTimesEveryProcessTakesTheSame) {
    for (const Precision precision : all_precisions) {
        if (!cudnn::convolution_refusal(problem(precision)).empty()) continue;
        const auto once = cudnn::make_convolution(problem(precision), handle_, "", true);
        EXPECT_EQ(once->implementation(),
                  cudnn::make_convolution(problem(precision), handle_, "", true)->implementation());
    }
    EXPECT_THROW(cudnn::make_convolution(problem(Precision::fp32), handle_, "no such plan", false), Unsupported);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CudnnConvolution,
                         testing::Combine(testing::Values("n3c5h13w17k7r3s5u2v3p1q2b", "n2c1h41w61k32r11s7u2v2p5q3",
                                                          "n2c32h21w30k32r5s3u2p2q1b"),
                                          testing::Values(Direction::fwd, Direction::dgrad, Direction::wgrad)));

}  // namespace
}  // namespace kbench
#endif
