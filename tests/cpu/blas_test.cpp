// CBLAS's steps agree with the reference in fp64 and fp32, in parallel too, and refuse other types.
#include "cpu/blas.h"

#include <gmock/gmock.h>

#include "kbench/error.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;
using test::Workspace;

class Blas : public testing::TestWithParam<DataType> {
  protected:
    DataType type = GetParam();
    Precision precision = precision_of(type);
};
INSTANTIATE_TEST_SUITE_P(Types, Blas, testing::Values(DataType::fp64, DataType::fp32),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(Blas, GemmHoldsOnOddShapesWithEitherWeightLayout) {
    for (const auto& [m, n, k] : {std::tuple{1, 64, 100}, {17, 100, 64}, {100, 1283, 64}, {33, 130, 1283}})
        for (const bool transposed : {false, true}) {
            const Gemm gemm{m, n, k, transposed};
            const Matrix x = Matrix::normal(type, m, k, 1);
            const Matrix w = transposed ? Matrix::normal(type, n, k, 2) : Matrix::normal(type, k, n, 2);
            Matrix out = Matrix::poisoned(type, m, n);
            blas_gemm(type, gemm.product(Direction::fwd), x.data(), w.data(), out.data());
            const auto some = elements(m, n, 5, 11);
            expect_agrees(out, some, reference::gemm(gemm, x.view(), w.view(), {}, std::nullopt, {}, some), precision);
        }
}

TEST_P(Blas, GradientsOfAGemmHoldOnOddShapesWithEitherWeightLayout) {
    for (const bool transposed : {false, true})
        for (const Direction direction : {Direction::dgrad, Direction::wgrad}) {
            const Gemm gemm{33, 130, 283, transposed};
            const std::vector<OperandSpec> specs = gemm.operands(direction);
            const Matrix first = Matrix::normal(type, specs[0].rows, specs[0].columns, 1),
                         second = Matrix::normal(type, specs[1].rows, specs[1].columns, 2);
            Matrix out = Matrix::poisoned(type, specs[2].rows, specs[2].columns);
            const Gemm::Product product = gemm.product(direction);
            blas_gemm(type, product, (product.left_is_second ? second : first).data(),
                      (product.left_is_second ? first : second).data(), out.data());
            const auto some = elements(out.rows, out.columns, 5, 11);
            expect_agrees(out, some, reference::gemm_gradient(gemm, direction, first.view(), second.view(), some),
                          precision);
        }
}

TEST_P(Blas, AttentionHoldsAtSequenceEndsWithinABlock) {
    for (const std::int64_t seq : {1, 17, 64, 65, 200}) {
        const Attention attention{{2, 3, seq, 64}, 0.125};
        const Matrix qkv = Matrix::normal(type, 2 * seq, 3 * 3 * 64, 1, 2);
        Matrix out = Matrix::poisoned(type, 2 * seq, 3 * 64);
        Workspace workspace(blas_attention_workspace(type, attention));
        Matrix lse = Matrix::poisoned(type, 2 * 3, seq);
        blas_attention(type, attention, qkv.data(), lse.data(), out.data(), workspace.data());
        const auto some = elements(out.rows, out.columns, 3, 13);
        expect_agrees(out, some, reference::attention(attention, qkv.view(), some), precision);
        const auto queries = elements(lse.rows, lse.columns, 1, 7);
        expect_agrees(lse, queries, reference::attention_lse(attention, qkv.view(), queries), precision);
    }
}

TEST_P(Blas, UnfusedProductsCoverEveryHeadOfEveryBatch) {
    for (const std::int64_t seq : {17, 100}) {
        const AttentionShape shape{2, 3, seq, 64};
        const Matrix qkv = Matrix::normal(type, 2 * seq, 3 * 3 * 64, 1);
        Matrix scores = Matrix::poisoned(type, 2 * 3 * seq, seq);
        blas_attention_scores(type, shape, qkv.data(), scores.data());
        const auto all = elements(scores.rows, scores.columns);
        expect_agrees(scores, all, reference::attention_scores({shape, false}, qkv.view(), all), precision);

        Matrix out = Matrix::poisoned(type, 2 * seq, 3 * 64);
        blas_attention_context(type, shape, scores.data(), qkv.data(), out.data());
        const auto outputs = elements(out.rows, out.columns);
        expect_agrees(out, outputs, reference::attention_context({shape}, scores.view(), qkv.view(), outputs),
                      precision);
    }
}

TEST(BlasSupport, OtherTypesAreRefusedByName) {
    const Matrix x(DataType::bf16, 4, 4);
    Matrix out(DataType::bf16, 4, 4);
    try {
        blas_gemm(DataType::bf16, Gemm{4, 4, 4}.product(Direction::fwd), x.data(), x.data(), out.data());
        FAIL() << "bf16 was not refused";
    } catch (const Unsupported& error) {
        EXPECT_STREQ(error.what(), "BLAS computes in fp64 and fp32, not in bf16");
    }
}

TEST(BlasSupport, VersionNamesLibraryCoreAndThreads) {
    EXPECT_THAT(blas_version(), testing::MatchesRegex("OpenBLAS [0-9.]+ [A-Za-z0-9_]+, [0-9]+ threads?"));
}

TEST(BetterBlasCore, NamesKernelsThatTheCpuHasWhereOpenBlasDidNotKnowIt) {
    const std::vector<std::string> avx2{"avx2"}, avx512{"avx2", "avx512f", "amx_tile"};
    EXPECT_EQ(better_blas_core("Prescott", avx512), "SkylakeX");
    EXPECT_EQ(better_blas_core("Nehalem", avx2), "Haswell");
    EXPECT_EQ(better_blas_core("Prescott", {}), "") << "an old CPU is what it is";
    EXPECT_EQ(better_blas_core("SkylakeX", avx512), "");
    EXPECT_EQ(better_blas_core("Zen", avx2), "");
}

}  // namespace
}  // namespace kbench::cpu
