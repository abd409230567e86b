// oneDNN's steps agree with the reference in every precision that this CPU has, on shapes that end within a block, with
// every epilogue, and inside their workspaces; what the CPU cannot do is refused with the reason.
#include "cpu/onednn/onednn.h"

#include <gmock/gmock.h>
#include <omp.h>

#include "kbench/error.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::Workspace;

/// Tests for one precision; skipped with oneDNN's reason where the CPU has it not.
class OneDnn : public testing::TestWithParam<Precision> {
  protected:
    void SetUp() override {
        if (const std::string reason = onednn_unsupported(precision); !reason.empty()) GTEST_SKIP() << reason;
    }
    Precision precision = GetParam();
    DataType type = storage_type(precision);

    /// The output of `run` with a weight packed for it, given the matrix that `out` is before the run.
    Matrix multiply(const Gemm& gemm, std::optional<Activation> activation, const Matrix& x, const Matrix& w,
                    const Matrix* bias, const Matrix* residual, Matrix out, bool in_place = false) const {
        const Matmul matmul(gemm, precision, bias != nullptr, activation, residual != nullptr);
        Workspace packed(matmul.packed_bytes()), workspace(matmul.workspace_bytes());
        matmul.pack(w.data(), packed.data());
        const void* added = in_place ? out.data() : residual ? residual->data() : nullptr;
        matmul.run(x.data(), packed.data(), bias ? bias->data() : nullptr, added, out.data(), workspace.data());
        return out;
    }

    void expect_attention_agrees(const Attention& attention, double deviation) const {
        const auto [batch, heads, seq, head_size] = attention.shape;
        const Matrix qkv = Matrix::normal(type, batch * seq, 3 * heads * head_size, 1, deviation);
        Matrix out = Matrix::poisoned(type, batch * seq, heads * head_size);
        Matrix lse = Matrix::poisoned(DataType::fp32, batch * heads, seq);
        const CausalAttention step(attention, precision);
        Workspace workspace(step.workspace_bytes());
        step.run(qkv.data(), static_cast<float*>(lse.data()), out.data(), workspace.data());
        const auto some = elements(out.rows, out.columns, 7, 13);
        expect_agrees(out, some, reference::attention(attention, qkv.view(), some), precision);
        const auto queries = elements(lse.rows, lse.columns, 1, 7);
        expect_agrees(lse, queries, reference::attention_lse(attention, qkv.view(), queries), precision);
    }
};
INSTANTIATE_TEST_SUITE_P(Precisions, OneDnn, testing::Values(Precision::fp32, Precision::bf16, Precision::fp16),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(OneDnn, MatmulHoldsOnOddShapesWithEitherWeightLayoutAndEveryEpilogue) {
    std::vector<std::optional<Activation>> functions{std::nullopt};
    for (const ActivationFacts& facts : activation_table) functions.push_back(facts.function);
    for (const auto& [m, n, k] : {std::tuple{1, 64, 100}, {17, 100, 64}, {100, 1283, 64}, {33, 130, 1283}})
        for (const std::optional<Activation> function : functions)
            for (int epilogue = 0; epilogue < 8; ++epilogue) {
                const bool with_bias = epilogue & 1, transposed = epilogue & 2, with_residual = epilogue & 4;
                SCOPED_TRACE(testing::Message()
                             << m << "x" << n << "x" << k << " transposed " << transposed << " bias " << with_bias
                             << " " << (function ? facts_of(*function).kind : "") << " residual " << with_residual);
                const Gemm gemm{m, n, k, transposed};
                const Matrix x = Matrix::normal(type, m, k, 1);
                const Matrix w = transposed ? Matrix::normal(type, n, k, 2, 0.1) : Matrix::normal(type, k, n, 2, 0.1);
                const Matrix bias = Matrix::normal(type, 1, n, 3), residual = Matrix::normal(type, m, n, 4);
                const Matrix out = multiply(gemm, function, x, w, with_bias ? &bias : nullptr,
                                            with_residual ? &residual : nullptr, Matrix::poisoned(type, m, n));
                const auto some = elements(m, n, 5, 11);
                expect_agrees(out, some,
                              reference::gemm(gemm, x.view(), w.view(), with_bias ? bias.view() : reference::View{},
                                              function, with_residual ? residual.view() : reference::View{}, some),
                              precision);
            }
}

TEST_P(OneDnn, GradientsOfAGemmHoldOnOddShapesWithEitherWeightLayout) {
    for (const auto& [m, n, k] : {std::tuple{1, 64, 100}, {17, 100, 64}, {100, 283, 64}, {33, 130, 1283}})
        for (const bool transposed : {false, true})
            for (const Direction direction : {Direction::dgrad, Direction::wgrad}) {
                const Gemm gemm{m, n, k, transposed};
                SCOPED_TRACE(gemm.text() + " " + std::string(name(direction)));
                const std::vector<OperandSpec> specs = gemm.operands(direction);
                const Matrix first = Matrix::normal(type, specs[0].rows, specs[0].columns, 1),
                             second = Matrix::normal(type, specs[1].rows, specs[1].columns, 2, 0.1);
                Matrix out = Matrix::poisoned(type, specs[2].rows, specs[2].columns);
                const Gemm::Product product = gemm.product(direction);
                const PlainMatmul matmul(product, precision);
                Workspace workspace(matmul.workspace_bytes());
                const Matrix &left = product.left_is_second ? second : first,
                             &right = product.left_is_second ? first : second;
                matmul.run(left.data(), right.data(), out.data(), workspace.data());
                const auto some = elements(out.rows, out.columns, 5, 11);
                expect_agrees(out, some, reference::gemm_gradient(gemm, direction, first.view(), second.view(), some),
                              precision);
            }
}

// k = 5120 is taken in several chunks, whose partial sums must not overwrite a residual that is still to be added.
TEST_P(OneDnn, MatmulAddsAResidualInPlaceToTheSameResult) {
    const Gemm gemm{100, 320, 5120};
    const Matrix x = Matrix::normal(type, 100, 5120, 1), w = Matrix::normal(type, 5120, 320, 2, 0.02);
    const Matrix bias = Matrix::normal(type, 1, 320, 3), residual = Matrix::normal(type, 100, 320, 4);
    const Matrix apart = multiply(gemm, std::nullopt, x, w, &bias, &residual, Matrix::poisoned(type, 100, 320));
    EXPECT_EQ(multiply(gemm, std::nullopt, x, w, &bias, &residual, residual, true), apart);
    const auto some = elements(100, 320, 9, 17);
    expect_agrees(apart, some,
                  reference::gemm(gemm, x.view(), w.view(), bias.view(), std::nullopt, residual.view(), some),
                  precision);
}

TEST_P(OneDnn, MatmulsOfGpt2LargeUseTheBlockedKernelWhereTheCpuHasAvx512) {
    if (!onednn_isa().starts_with("avx512")) GTEST_SKIP() << "this CPU has " << onednn_isa();
    for (const Gemm& gemm : {Gemm{1024, 3840, 1280}, Gemm{1024, 1280, 5120}, Gemm{1024, 50257, 1280, true}})
        EXPECT_THAT(Matmul(gemm, precision, true, Activation::gelu_tanh, true).implementation(),
                    testing::StartsWith("brg"));
    EXPECT_THAT(CausalAttention({{1, 20, 1024, 64}, 0.125}, precision).implementation(), testing::StartsWith("brg"));
    EXPECT_EQ(CausalAttentionGradient({{1, 20, 1024, 64}, 0.125}, precision).implementation(),
              CausalAttention({{1, 20, 1024, 64}, 0.125}, precision).implementation());
    for (const auto kind : {BatchedAttentionProduct::Kind::scores, BatchedAttentionProduct::Kind::context})
        EXPECT_THAT(BatchedAttentionProduct(kind, {1, 20, 1024, 64}, precision, false).implementation(),
                    testing::StartsWith("brg"));
}

TEST_P(OneDnn, NormaliseAgreesWithLayerNorm) {
    for (const std::int64_t rows : {1, 17, 100})
        for (const std::int64_t width : {64, 100, 1283}) {
            const LayerNorm op{rows, width, 1e-5};
            const Matrix x = Matrix::normal(type, rows, width, 1), weight = Matrix::normal(type, 1, width, 2),
                         bias = Matrix::normal(type, 1, width, 3);
            Matrix out = Matrix::poisoned(type, rows, width);
            const Normalise step(op, precision);
            Workspace workspace(step.workspace_bytes());
            step.run(x.data(), weight.data(), bias.data(), out.data(), workspace.data());
            const auto all = elements(rows, width);
            expect_agrees(out, all, reference::layer_norm(op, x.view(), {}, {}, weight.view(), bias.view(), all),
                          precision);
        }
}

TEST_P(OneDnn, CausalAttentionHoldsAtEverySequenceEndWithinABlock) {
    for (const std::int64_t seq : {1, 17, 63, 64, 65, 127, 128, 129, 600})
        expect_attention_agrees({{2, 3, seq, 64}, 0.125}, 1);
}

TEST_P(OneDnn, CausalAttentionHoldsForOtherHeadSizes) {
    for (const std::int64_t head_size : {32, 80, 100, 128}) expect_attention_agrees({{1, 2, 300, head_size}, 0.1}, 1);
}

// Without the maximum subtracted, e^(scores) would overflow: they reach some hundreds here.
TEST_P(OneDnn, CausalAttentionSurvivesLargeScores) { expect_attention_agrees({{1, 2, 150, 64}, 0.5}, 4); }

TEST_P(OneDnn, CausalAttentionGivesTheSameOnOneThread) {
    const Attention attention{{1, 5, 200, 64}, 0.125};
    const Matrix qkv = Matrix::normal(type, 200, 3 * 5 * 64, 1);
    const auto run = [&] {
        Matrix out = Matrix::poisoned(type, 200, 5 * 64);
        const CausalAttention step(attention, precision);
        Workspace workspace(step.workspace_bytes());
        step.run(qkv.data(), nullptr, out.data(), workspace.data());
        return out;
    };
    const Matrix with_all = run();
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const Matrix with_one = run();
    omp_set_num_threads(threads);
    EXPECT_EQ(with_one, with_all);
}

TEST_P(OneDnn, BatchedScoresAreTheWholeSquareOfEachHead) {
    for (const bool upcast : {false, true})
        for (const std::int64_t seq : {17, 100}) {
            const AttentionShape shape{2, 3, seq, 64};
            const Matrix qkv = Matrix::normal(type, 2 * seq, 3 * 3 * 64, 1);
            Matrix scores = Matrix::poisoned(upcast ? DataType::fp32 : type, 2 * 3 * seq, seq);
            const BatchedAttentionProduct step(BatchedAttentionProduct::Kind::scores, shape, precision, upcast);
            Workspace workspace(step.workspace_bytes());
            step.run_scores(qkv.data(), scores.data(), workspace.data());
            const auto all = elements(scores.rows, scores.columns);
            expect_agrees(scores, all, reference::attention_scores({shape, upcast}, qkv.view(), all), precision);
        }
}

TEST_P(OneDnn, BatchedContextPutsHeadsSideBySide) {
    for (const std::int64_t seq : {17, 100}) {
        const AttentionShape shape{2, 3, seq, 64};
        const Matrix qkv = Matrix::normal(type, 2 * seq, 3 * 3 * 64, 1);
        const Matrix probabilities = Matrix::normal(type, 2 * 3 * seq, seq, 2);
        Matrix out = Matrix::poisoned(type, 2 * seq, 3 * 64);
        const BatchedAttentionProduct step(BatchedAttentionProduct::Kind::context, shape, precision, false);
        Workspace workspace(step.workspace_bytes());
        step.run_context(probabilities.data(), qkv.data(), out.data(), workspace.data());
        const auto all = elements(out.rows, out.columns);
        expect_agrees(out, all, reference::attention_context({shape}, probabilities.view(), qkv.view(), all),
                      precision);
    }
}

TEST(OneDnnSupport, Fp32IsAlwaysThereAndFp64AndTf32AreRefusedWithTheReason) {
    EXPECT_EQ(onednn_unsupported(Precision::fp32), "");
    EXPECT_EQ(onednn_unsupported(Precision::fp64), "oneDNN has no fp64; the blas provider computes it");
    EXPECT_EQ(onednn_unsupported(Precision::tf32), "tf32 is a GPU tensor-core format; oneDNN on a CPU has none");
}

TEST(OneDnnSupport, WhatTheIsaLacksIsRefusedByEveryStepWithTheSameReason) {
    int refused = 0;
    for (const Precision precision : all_precisions) {
        const std::string reason = onednn_unsupported(precision);
        if (reason.empty()) continue;
        ++refused;
        const auto is_refused = [&](auto make) {
            try {
                make();
                ADD_FAILURE() << name(precision) << " was not refused";
            } catch (const Unsupported& error) {
                EXPECT_EQ(error.what(), reason);
            }
        };
        const AttentionShape shape{1, 1, 64, 64};
        is_refused([&] { Matmul({64, 64, 64}, precision, false, std::nullopt, false); });
        is_refused([&] { Normalise({64, 64, 1e-5}, precision); });
        is_refused([&] { CausalAttention({shape, 0.125}, precision); });
        is_refused([&] { CausalAttentionGradient({shape, 0.125}, precision); });
        is_refused([&] { BatchedAttentionProduct(BatchedAttentionProduct::Kind::scores, shape, precision, false); });
        is_refused([&] { Convolution({1, 1, 8, 8, 4, 3, 3}, precision); });
        is_refused([&] { RecurrentLayer(Cell::gru, {4, 2, 16}, precision); });
    }
    EXPECT_GE(refused, 2);
}

TEST(OneDnnSupport, ReasonsNameTheMissingInstructionsAndTheIsa) {
    for (const auto& [precision, wanted] :
         {std::pair{Precision::bf16, "AVX512_BF16"}, std::pair{Precision::fp16, "AVX512_FP16"}}) {
        const std::string reason = onednn_unsupported(precision);
        if (reason.empty()) continue;
        EXPECT_THAT(reason, testing::AllOf(testing::HasSubstr(wanted), testing::EndsWith(onednn_isa())));
    }
    EXPECT_THAT(onednn_version(), testing::StartsWith("oneDNN 3."));
}

}  // namespace
}  // namespace kbench::cpu
