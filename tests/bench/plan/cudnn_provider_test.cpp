// What provider `cudnn` takes and why it refuses the rest. Needs neither a device nor cuDNN's library.
#ifdef KBENCH_HAVE_CUDNN
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "bench/plan/fuse.h"
#include "bench/plan/provider.h"
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
    EXPECT_EQ(taken(Step::of(LayerNorm{1024, 1280, 1e-5})), "fp16 bf16 tf32 fp32 ");
    EXPECT_EQ(taken(Step::of(Softmax{20 * 1024, 1024, false})), "fp16 bf16 tf32 fp32 fp64 ");
    EXPECT_EQ(taken(Step::of(ResidualAdd{1024, 1280})), "");
}

TEST_F(CudnnProvider, SaysWhyItRefuses) {
    EXPECT_EQ(refusal(Step::of(Attention{{1, 20, 1024, 64}, 0.125}), Precision::fp32), "has no attention in fp32");
    EXPECT_EQ(refusal(Step::of(Attention{{1, 20, 1024, 100}, 0.1}), Precision::fp16),
              "head size 100: its attention takes multiples of 8 up to 256");
    EXPECT_EQ(refusal(Step::of(Attention{{1, 20, 1024, 264}, 0.1}), Precision::bf16),
              "head size 264: its attention takes multiples of 8 up to 256");
    EXPECT_EQ(refusal(Step::of(LayerNorm{1024, 1280, 1e-5}), Precision::fp64), "has no layernorm in fp64");
    EXPECT_EQ(refusal(Step::of(Softmax{std::int64_t{1} << 20, 2048, false}), Precision::fp16),
              "2147483648 scores: its softmax takes less than 2^31");
    EXPECT_EQ(refusal(Step::of(Gemm{64, 64, 64}), Precision::fp16), "has no gemm");
    EXPECT_EQ(refusal(Step::of(ScaleMask{{1, 20, 1024, 64}, 0.125, false}), Precision::fp16), "has no scale_mask");
}

TEST_F(CudnnProvider, LeavesWhatIsAddedBeforeALayerNormToOthers) {
    Step step = parse_problem("layernorm", "r1024w1280+residual");
    EXPECT_EQ(refusal(step, Precision::fp16), "its layernorm takes no residual in fp16");
    step.kept = {0};
    EXPECT_EQ(refusal(step, Precision::fp16), "its layernorm takes no residual in fp16");
    EXPECT_EQ(refusal(parse_problem("layernorm", "r1024w1280+bias+residual"), Precision::fp16),
              "its layernorm takes no bias+residual in fp16");
}

TEST_F(CudnnProvider, RefusesASoftmaxThatStoresLessThanItReads) {
    const Step upcast = Step::of(Softmax{20 * 1024, 1024, true});
    for (const Precision precision : {Precision::fp16, Precision::bf16})
        EXPECT_EQ(refusal(upcast, precision), "its softmax stores the type that it reads, and the scores are fp32");
    EXPECT_EQ(taken(upcast), "tf32 fp32 fp64 ");
}

TEST_F(CudnnProvider, AStepThatIsRefusedIsNotMade) {
    EXPECT_THROW(cudnn_->make(Step::of(Gemm{64, 64, 64}), Precision::fp16), Unsupported);
}

TEST_F(CudnnProvider, AModelTakesItOnlyOnRequestAndTheStepsThatItFusesApart) {
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;
    const Model model = make_gpt2(config, 2, 8, AttentionKind::fused);
    for (const AssignedStep& s : assign_steps(model, Precision::fp16, providers_, {}, 64))
        EXPECT_NE(s.provider->name, "cudnn");
    if (!cudnn_unavailable().empty()) GTEST_SKIP() << cudnn_unavailable();
    int attentions = 0, norms = 0;
    for (const AssignedStep& s :
         assign_steps(model, Precision::fp16, providers_, {{"attention", "cudnn"}, {"layernorm", "cudnn"}}, 64)) {
        const bool attention = s.step.head_op().is<Attention>(), norm = s.step.head_op().is<LayerNorm>();
        attentions += attention ? 1 : 0;
        norms += norm ? 1 : 0;
        EXPECT_EQ(s.provider->name == "cudnn", norm || attention);
        EXPECT_FALSE(norm && s.step.ops.size() > 1) << shape_text(s.step);
    }
    EXPECT_EQ(attentions, 2);
    EXPECT_EQ(norms, 5);
}

TEST_F(CudnnProvider, TheLibraryHasAVersionWhereItIs) {
    EXPECT_EQ(cudnn_version().empty(), !cudnn_unavailable().empty());
    EXPECT_THAT(cudnn_unavailable().empty() ? cudnn_version() : "9.", testing::StartsWith("9."));
    EXPECT_THAT(cudnn_unavailable().empty() ? "libcudnn" : cudnn_unavailable(), HasSubstr("libcudnn"));
}

}  // namespace
}  // namespace kbench
#endif
