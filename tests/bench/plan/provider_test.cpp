// The table of CUDA providers: who computes what when nobody asks for anyone. Needs no device.
#ifdef KBENCH_HAVE_CUDA
#include "bench/plan/provider.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bench/plan/fuse.h"
#include "models/gpt2.h"

namespace kbench {
namespace {

Model small_model(AttentionKind attention) {
    Gpt2Config config{"tiny", 64, 2, 4};
    config.vocab_size = 100;
    return make_gpt2(config, 2, 8, attention);
}

TEST(CudaProviders, ModelsRunTheirProductsOnCublasLtUnlessAskedOtherwise) {
    const auto providers = make_providers(BackendKind::cuda, {});
    for (const AttentionKind attention : {AttentionKind::fused, AttentionKind::unfused})
        for (const Precision precision : all_precisions) {
            const Model model = small_model(attention);
            for (const AssignedStep& s : assign_steps(model, precision, providers, {}, 64)) {
                const bool product = std::holds_alternative<GemmStep>(s.step.kind) ||
                                     std::holds_alternative<AttentionScores>(s.step.kind) ||
                                     std::holds_alternative<AttentionContext>(s.step.kind);
                EXPECT_EQ(s.provider->name(), product ? "cublaslt" : "native")
                    << name(precision) << " " << op_name(s.step.kind) << " " << shape_text(s.step.kind);
            }
        }
}

TEST(CudaProviders, NativeComputesPlainProductsAndLeavesTheirEpiloguesToOthers) {
    const auto providers = make_providers(BackendKind::cuda, {});
    const Model model = small_model(AttentionKind::fused);
    for (const Precision precision : all_precisions)
        for (const AssignedStep& s : assign_steps(model, precision, providers, {{"*", "native"}}, 64)) {
            EXPECT_EQ(s.provider->name(), "native");
            const auto* gemm = std::get_if<GemmStep>(&s.step.kind);
            EXPECT_FALSE(gemm != nullptr && (gemm->bias || gemm->gelu || gemm->residual)) << shape_text(s.step.kind);
        }
}

TEST(CudaProviders, RungsOfTheGemmLadderComputeOnlyWhatTheyAreAskedFor) {
    int rungs = 0;
    for (const auto& provider : make_providers(BackendKind::cuda, {})) {
        const bool rung = provider->name().starts_with("native_");
        EXPECT_EQ(provider->on_request_only(), rung || provider->name() == "cudnn") << provider->name();
        if (!rung) continue;
        ++rungs;
        const GemmStep plain{{64, 64, 64, false}, 64};
        GemmStep with_bias = plain;
        with_bias.bias = true;
        EXPECT_EQ(provider->unsupported(with_bias, Precision::fp16), "its GEMM has no epilogue");
        EXPECT_EQ(provider->unsupported(plain, Precision::fp16), "");
        EXPECT_EQ(provider->unsupported(plain, Precision::tf32).empty(), provider->name() == "native_mma");
        EXPECT_EQ(provider->unsupported(plain, Precision::fp32).empty(), provider->name() != "native_mma");
    }
    EXPECT_EQ(rungs, 5);
}

}  // namespace
}  // namespace kbench
#endif
