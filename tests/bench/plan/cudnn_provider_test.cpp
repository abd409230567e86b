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

namespace kbench {
namespace {

using testing::HasSubstr;

class CudnnProvider : public testing::Test {
  protected:
    std::string refusal(const StepKind& kind, Precision precision) const {
        return cudnn_->unsupported(kind, precision);
    }
    /// In which precisions it takes a step; where the library is missing, refuses it for that alone.
    std::string taken(const StepKind& kind) const {
        std::string names;
        for (const Precision precision : all_precisions)
            if (refusal(kind, precision) == cudnn_unavailable()) names += fmt::format("{} ", name(precision));
        return names;
    }
    std::vector<std::unique_ptr<Provider>> providers_ = make_providers(BackendKind::cuda, {});
    Provider* cudnn_ =
        std::ranges::find(providers_, "cudnn", [](const auto& provider) { return provider->name(); }) -> get();
};

TEST_F(CudnnProvider, TakesEachOpInThePrecisionsThatTheLibraryHas) {
    EXPECT_EQ(taken(Attention{{1, 20, 1024, 64}, 0.125}), "fp16 bf16 ");
    EXPECT_EQ(taken(NormStep{{1024, 1280, 1e-5}}), "fp16 bf16 tf32 fp32 ");
    EXPECT_EQ(taken(Softmax{20 * 1024, 1024, false}), "fp16 bf16 tf32 fp32 fp64 ");
    EXPECT_EQ(taken(ResidualAdd{1024, 1280}), "");
}

TEST_F(CudnnProvider, SaysWhyItRefuses) {
    EXPECT_EQ(refusal(Attention{{1, 20, 1024, 64}, 0.125}, Precision::fp32), "its attention computes fp16 and bf16");
    EXPECT_EQ(refusal(Attention{{1, 20, 1024, 100}, 0.1}, Precision::fp16),
              "head size 100: its attention takes multiples of 8 up to 256");
    EXPECT_EQ(refusal(Attention{{1, 20, 1024, 264}, 0.1}, Precision::bf16),
              "head size 264: its attention takes multiples of 8 up to 256");
    EXPECT_EQ(refusal(NormStep{{1024, 1280, 1e-5}}, Precision::fp64), "its layer norm computes no fp64");
    EXPECT_EQ(refusal(Softmax{std::int64_t{1} << 20, 2048, false}, Precision::fp16),
              "2147483648 scores: its softmax takes less than 2^31");
    EXPECT_EQ(refusal(GemmStep{{64, 64, 64, false}, 64}, Precision::fp16), "has no gemm");
    EXPECT_EQ(refusal(ScaleMask{{1, 20, 1024, 64}, 0.125, false}, Precision::fp16), "has no scale_mask");
}

TEST_F(CudnnProvider, LeavesWhatIsAddedBeforeALayerNormToOthers) {
    NormStep step{{1024, 1280, 1e-5}};
    for (bool* added : {&step.pre_bias, &step.residual, &step.keep_sum}) {
        *added = true;
        EXPECT_EQ(refusal(step, Precision::fp16), "its layer norm adds nothing to what it normalises");
        *added = false;
    }
}

TEST_F(CudnnProvider, RefusesASoftmaxThatStoresLessThanItReads) {
    const Softmax upcast{20 * 1024, 1024, true};
    for (const Precision precision : {Precision::fp16, Precision::bf16})
        EXPECT_EQ(refusal(upcast, precision), "its softmax stores the type that it reads, and the scores are fp32");
    EXPECT_EQ(taken(upcast), "tf32 fp32 fp64 ");
}

TEST_F(CudnnProvider, AStepThatIsRefusedIsNotMade) {
    EXPECT_THROW(cudnn_->make(GemmStep{{64, 64, 64, false}, 64}, Precision::fp16), Unsupported);
}

TEST_F(CudnnProvider, AModelTakesItOnlyOnRequestAndTheStepsThatItFusesApart) {
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;
    const Model model = make_gpt2(config, 2, 8, AttentionKind::fused);
    for (const AssignedStep& s : assign_steps(model, Precision::fp16, providers_, {}, 64))
        EXPECT_NE(s.provider->name(), "cudnn");
    if (!cudnn_unavailable().empty()) GTEST_SKIP() << cudnn_unavailable();
    int attentions = 0, norms = 0;
    for (const AssignedStep& s :
         assign_steps(model, Precision::fp16, providers_, {{"attention", "cudnn"}, {"layernorm", "cudnn"}}, 64)) {
        attentions += std::holds_alternative<Attention>(s.step.kind) ? 1 : 0;
        const auto* norm = std::get_if<NormStep>(&s.step.kind);
        norms += norm != nullptr ? 1 : 0;
        EXPECT_EQ(s.provider->name() == "cudnn", norm != nullptr || std::holds_alternative<Attention>(s.step.kind));
        EXPECT_FALSE(norm != nullptr && (norm->residual || norm->pre_bias)) << shape_text(s.step.kind);
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
