// The CPU's own vector loops agree with the reference in every stored type, at widths that end within a vector, and in
// place.
#include <gmock/gmock.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "cpu/native/activation.h"
#include "cpu/native/elementwise.h"
#include "cpu/native/embedding.h"
#include "cpu/native/layernorm.h"
#include "cpu/native/softmax.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::Case;
using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;

constexpr double infinity = std::numeric_limits<double>::infinity();

class Native : public testing::TestWithParam<Case> {
  protected:
    DataType type = GetParam().type;
    std::int64_t rows = GetParam().rows, width = GetParam().width;
    Precision precision = precision_of(type);
    Matrix x = Matrix::normal(type, rows, width, 1), other = Matrix::normal(type, rows, width, 2);
    Matrix weight = Matrix::normal(type, 1, width, 3), bias = Matrix::normal(type, 1, width, 4);
    Matrix out = Matrix::poisoned(type, rows, width);
    std::vector<reference::Element> all = elements(rows, width);
};

TEST_P(Native, EmbeddingAddsTheTokensRowToThePositionsRow) {
    const Embedding op{rows, 13, width, 29, 13};
    const Matrix wte = Matrix::normal(type, op.vocab, width, 5), wpe = Matrix::normal(type, op.positions, width, 6);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 7 % 29);
    embedding(type, op, tokens.data(), wte.data(), wpe.data(), out.data());
    const reference::View token_view{tokens.data(), DataType::int32, rows, 1, 1};
    expect_agrees(out, all, reference::embedding(op, token_view, wte.view(), wpe.view(), all), precision);
}

TEST_P(Native, EmbeddingAtAddsTheRowsOfTheGivenPositions) {
    const std::int64_t seq = rows % 2 == 0 ? 2 : 1;
    const EmbeddingAt op{rows, seq, width, 29, 31};
    const Matrix wte = Matrix::normal(type, op.vocab, width, 5), wpe = Matrix::normal(type, op.table, width, 6);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows)), positions(static_cast<std::size_t>(rows / seq));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 7 % 29);
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(29 - i * 5 % 30);
    embedding_at(type, op, tokens.data(), positions.data(), wte.data(), wpe.data(), out.data());
    const reference::View token_view{tokens.data(), DataType::int32, 1, rows, rows},
        position_view{positions.data(), DataType::int32, rows / seq, 1, 1};
    expect_agrees(out, all, reference::embedding_at(op, token_view, position_view, wte.view(), wpe.view(), all),
                  precision);
    // The last row by hand.
    const std::int64_t row = rows - 1, place = positions.back() + row % seq;
    EXPECT_NEAR(reference::embedding_at(op, token_view, position_view, wte.view(), wpe.view(), all).back().value,
                wte(tokens.back(), width - 1) + wpe(place, width - 1), 1e-12);
}

TEST_P(Native, TokenEmbeddingCopiesTheTokensRow) {
    const TokenEmbedding op{rows, width, 29};
    const Matrix table = Matrix::normal(type, op.vocab, width, 5);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>((i * 7 + 28) % 29);
    token_embedding(type, op, tokens.data(), table.data(), out.data());
    const reference::View token_view{tokens.data(), DataType::int32, 1, rows, rows};
    const auto expected = reference::token_embedding(op, token_view, table.view(), all);
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(out(all[i].row, all[i].column), expected[i].value);
        EXPECT_EQ(expected[i].value, table(tokens[static_cast<std::size_t>(all[i].row)], all[i].column));
    }
}

TEST_P(Native, SwiGluGatesTheSecondHalfByTheFirst) {
    const SwiGlu op{rows, width};
    const Matrix gate_up = Matrix::normal(type, rows, 2 * width, 5, 4);
    const auto expected = reference::swiglu(op, gate_up.view(), all);
    swiglu(type, op, gate_up.data(), out.data());
    expect_agrees(out, all, expected, precision);
    const double gate = gate_up(rows - 1, width - 1), up = gate_up(rows - 1, 2 * width - 1);
    EXPECT_NEAR(expected.back().value, gate / (1 + std::exp(-gate)) * up, 1e-12) << "the last element by hand";
    const Matrix swapped = [&] {
        Matrix halves = gate_up;
        const auto half = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(width) * size_of(type));
        for (std::int64_t row = 0; row < rows; ++row)
            std::rotate(halves.bytes.begin() + 2 * row * half, halves.bytes.begin() + (2 * row + 1) * half,
                        halves.bytes.begin() + 2 * (row + 1) * half);
        return halves;
    }();
    swiglu(type, op, swapped.data(), out.data());
    int agree = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
        agree += reference::agrees(out(all[i].row, all[i].column), expected[i], precision, type);
    EXPECT_LE(agree, static_cast<int>(all.size() / 4)) << "the halves are not alike";
}

TEST_P(Native, EmbeddingsGradientAddsUpTheRowsOfATokenWhateverTheThreads) {
    const std::int64_t seq = rows == 100 ? 25 : rows;
    const reference::View dout = x.view();
    for (const std::size_t distinct : {1, 5, 1000})
        for (const bool accumulates : {false, true}) {
            const Embedding op{rows, seq, width, 31, seq + 2, accumulates};
            std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows));
            for (std::size_t i = 0; i < tokens.size(); ++i)
                tokens[i] = static_cast<std::int32_t>(i * 7 % distinct % 31);
            const reference::View token_view{tokens.data(), DataType::int32, 1, rows, rows};
            const Matrix before = Matrix::normal(type, op.vocab, width, 5);
            const auto run = [&] {
                std::vector<Matrix> made{accumulates ? before : Matrix::poisoned(type, op.vocab, width),
                                         Matrix::poisoned(type, op.positions, width)};
                test::Workspace workspace(embedding_gradient_workspace(op));
                embedding_gradient(type, op, tokens.data(), x.data(), made[0].data(), made[1].data(), workspace.data());
                return made;
            };
            const std::vector<Matrix> made = run();
            const auto of_wte = elements(op.vocab, width), of_wpe = elements(op.positions, width);
            expect_agrees(made[0], of_wte, reference::embedding_dwte(op, token_view, dout, before.view(), of_wte),
                          precision);
            expect_agrees(made[1], of_wpe, reference::embedding_dwpe(op, dout, of_wpe), precision);
            const int threads = omp_get_max_threads();
            omp_set_num_threads(1);
            EXPECT_EQ(run(), made);
            omp_set_num_threads(threads);
        }
}

TEST_P(Native, LayerNormHoldsWithoutResidual) {
    const LayerNorm op{rows, width, 1e-5};
    layer_norm(type, op, x.data(), nullptr, weight.data(), bias.data(), nullptr, out.data());
    expect_agrees(out, all, reference::layer_norm(op, x.view(), {}, {}, weight.view(), bias.view(), all), precision);
}

TEST_P(Native, LayerNormDoesNotCancelWhenTheMeanIsLarge) {
    const LayerNorm op{rows, width, 1e-5};
    const Matrix shifted = Matrix::normal(type, rows, width, 7, 1, 100);
    layer_norm(type, op, shifted.data(), nullptr, weight.data(), bias.data(), nullptr, out.data());
    expect_agrees(out, all, reference::layer_norm(op, shifted.view(), {}, {}, weight.view(), bias.view(), all),
                  precision);
}

TEST_P(Native, LayerNormStoresTheSumAlsoOverItsResidual) {
    const LayerNorm op{rows, width, 1e-5};
    const auto norm = reference::layer_norm(op, x.view(), {}, other.view(), weight.view(), bias.view(), all);
    const auto sum = reference::layer_norm_sum(op, x.view(), {}, other.view(), all);
    layer_norm(type, op, x.data(), other.data(), weight.data(), bias.data(), other.data(), out.data());
    expect_agrees(out, all, norm, precision);
    expect_agrees(other, all, sum, precision);
}

TEST_P(Native, LayerNormsGradientHoldsAlsoFarFromZeroAndWhateverTheThreads) {
    const LayerNorm op{rows, width, 1e-5};
    const auto columns = elements(1, width);
    for (const double mean : {0.0, 20.0}) {
        const Matrix in = Matrix::normal(type, rows, width, 7, 1, mean);
        const auto run = [&] {
            std::vector<Matrix> made{other, Matrix::poisoned(type, 1, width), Matrix::poisoned(type, 1, width)};
            test::Workspace workspace(layer_norm_gradient_workspace(type, op));
            layer_norm_gradient(type, op, in.data(), made[0].data(), weight.data(), nullptr, made[0].data(),
                                made[1].data(), made[2].data(), workspace.data());
            return made;
        };
        const std::vector<Matrix> made = run();
        expect_agrees(made[0], all, reference::layer_norm_dx(op, in.view(), other.view(), weight.view(), {}, all),
                      precision);
        expect_agrees(made[1], columns, reference::layer_norm_dw(op, in.view(), other.view(), columns), precision);
        expect_agrees(made[2], columns, reference::bias_gradient({rows, width}, other.view(), columns), precision);
        const int threads = omp_get_max_threads();
        omp_set_num_threads(1);
        EXPECT_EQ(run(), made);
        omp_set_num_threads(threads);
    }
}

TEST_P(Native, LayerNormsGradientAddsTheOneThatComesPastItAlsoOverIt) {
    const LayerNorm op{rows, width, 1e-5};
    const Matrix dy = Matrix::normal(type, rows, width, 8);
    Matrix past = other, dw = Matrix::poisoned(type, 1, width), db = dw;
    test::Workspace workspace(layer_norm_gradient_workspace(type, op));
    layer_norm_gradient(type, op, x.data(), dy.data(), weight.data(), past.data(), past.data(), dw.data(), db.data(),
                        workspace.data());
    expect_agrees(past, all, reference::layer_norm_dx(op, x.view(), dy.view(), weight.view(), other.view(), all),
                  precision);
}

TEST_P(Native, BiasAndEachActivationAreOptionalAndWorkInPlace) {
    std::vector<std::optional<Activation>> functions{std::nullopt};
    for (const ActivationFacts& facts : activation_table) functions.push_back(facts.function);
    for (const bool with_bias : {false, true})
        for (const std::optional<Activation> function : functions)
            for (const double deviation : {0.01, 1.0, 6.0}) {
                SCOPED_TRACE(testing::Message() << (function ? facts_of(*function).kind : "bias") << " " << deviation);
                const Matrix spread = Matrix::normal(type, rows, width, 5, deviation);
                const reference::View bias_view = with_bias ? bias.view() : reference::View{};
                Matrix in_place = spread;
                bias_activation(type, rows, width, in_place.data(), with_bias ? bias.data() : nullptr, function,
                                in_place.data());
                expect_agrees(in_place, all, reference::bias_activation(spread.view(), bias_view, function, all),
                              precision);
            }
}

TEST_P(Native, AnActivationsGradientHoldsFarFromZeroAndInPlace) {
    for (const ActivationFacts& facts : activation_table)
        for (const double deviation : {0.01, 1.0, 6.0, 40.0}) {
            SCOPED_TRACE(testing::Message() << facts.kind << " " << deviation);
            const Matrix spread = Matrix::normal(type, rows, width, 5, deviation);
            Matrix in_place = other;
            activation_gradient(type, facts.function, rows * width, spread.data(), in_place.data(), in_place.data());
            expect_agrees(in_place, all,
                          reference::activation_gradient(facts.function, spread.view(), other.view(), all), precision);
        }
}

TEST_P(Native, ABiasGradientIsTheSumOfItsColumnWhateverTheThreads) {
    Matrix sums = Matrix::poisoned(type, 1, width);
    bias_gradient(type, {rows, width}, x.data(), sums.data());
    const auto columns = elements(1, width);
    expect_agrees(sums, columns, reference::bias_gradient({rows, width}, x.view(), columns), precision);
    const int threads = omp_get_max_threads();
    Matrix by_one = Matrix::poisoned(type, 1, width);
    omp_set_num_threads(1);
    bias_gradient(type, {rows, width}, x.data(), by_one.data());
    omp_set_num_threads(threads);
    EXPECT_EQ(by_one, sums);
}

TEST_P(Native, ResidualAddWorksInPlace) {
    const auto expected = reference::residual_add(x.view(), other.view(), all);
    residual_add(type, rows * width, x.data(), other.data(), x.data());
    expect_agrees(x, all, expected, precision);
}

TEST_P(Native, SoftmaxOfMaskedRowsIsExactlyZeroWhereMasked) {
    const Softmax op{rows, width, false};
    std::int64_t i = 0;
    Matrix scores = x;
    scores.fill([&, this] {
        const std::int64_t row = i / width, column = i % width;
        ++i;
        return column <= row % width ? 30 * x(row, column) : -infinity;
    });
    softmax(type, type, op, scores.data(), out.data());
    expect_agrees(out, all, reference::softmax(op, scores.view(), all), precision);
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = r % width + 1; c < width; ++c)
            ASSERT_EQ(out(r, c), 0.0) << "row " << r << " column " << c;
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64})
        for (std::int64_t rows : {1, 17, 100})
            for (std::int64_t width : {1, 64, 100, 1283}) all.push_back({type, rows, width});
    return all;
}
INSTANTIATE_TEST_SUITE_P(Shapes, Native, testing::ValuesIn(cases()));

TEST(NativeAttentionParts, ScaleMaskScalesBelowTheDiagonalOfEachHeadAndHidesTheRest) {
    for (DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64}) {
        const ScaleMask op{{2, 3, 37, 64}, 0.125, false};
        Matrix scores = Matrix::normal(type, 2 * 3 * 37, 37, 1);
        const auto all = elements(scores.rows, scores.columns);
        const auto expected = reference::scale_mask(op, scores.view(), all);
        scale_mask(type, op, scores.data());
        expect_agrees(scores, all, expected, precision_of(type));
    }
}

TEST(NativeAttentionParts, SoftmaxNarrowsUpcastScores) {
    const Softmax op{19, 333, true};
    const Matrix scores = Matrix::normal(DataType::fp32, op.rows, op.width, 1, 5);
    const auto all = elements(op.rows, op.width);
    for (DataType type : {DataType::fp16, DataType::bf16}) {
        Matrix out = Matrix::poisoned(type, op.rows, op.width);
        softmax(DataType::fp32, type, op, scores.data(), out.data());
        expect_agrees(out, all, reference::softmax(op, scores.view(), all), precision_of(type));
    }
}

TEST(VectorConversion, EveryFp16AndBf16SurvivesLoadAndStore) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const Float16 half{static_cast<std::uint16_t>(bits)};
        const BFloat16 brain{static_cast<std::uint16_t>(bits)};
        Float16 half_back;
        BFloat16 brain_back;
        store(half_back, load(half));
        store(brain_back, load(brain));
        if (std::isnan(load(half)))
            ASSERT_TRUE(std::isnan(load(half_back))) << bits;
        else
            ASSERT_EQ(half_back.bits, bits);
        if (std::isnan(load(brain)))
            ASSERT_TRUE(std::isnan(load(brain_back))) << bits;
        else
            ASSERT_EQ(brain_back.bits, bits);
    }
}

TEST(VectorConversion, RoundsToNearestTiesToEvenAndOverflowsToInfinity) {
    const auto fp16 = [](float x) {
        Float16 to;
        store(to, x);
        return to.bits;
    };
    const auto bf16 = [](float x) {
        BFloat16 to;
        store(to, x);
        return to.bits;
    };
    EXPECT_EQ(fp16(1.0f), 0x3c00);
    EXPECT_EQ(fp16(1 + 0x1p-11f), 0x3c00);             // tie, to even: down
    EXPECT_EQ(fp16(1 + 0x3p-11f), 0x3c02);             // tie, to even: up
    EXPECT_EQ(fp16(1 + 0x1p-11f + 0x1p-20f), 0x3c01);  // above the tie
    EXPECT_EQ(fp16(65519.0f), 0x7bff);
    EXPECT_EQ(fp16(65520.0f), 0x7c00);
    EXPECT_EQ(fp16(-1e30f), 0xfc00);
    EXPECT_EQ(fp16(0x1p-24f), 0x0001);
    EXPECT_EQ(fp16(0x1p-25f), 0x0000);  // tie between 0 and the least subnormal
    EXPECT_EQ(fp16(0x3p-25f), 0x0002);
    EXPECT_EQ(bf16(1 + 0x1p-8f), 0x3f80);
    EXPECT_EQ(bf16(1 + 0x3p-8f), 0x3f82);
    EXPECT_EQ(bf16(3.4e38f), 0x7f80);
}

TEST(VectorExp2, IsWithinTwoUlpAndZeroFarBelow) {
    for (double x = -125.9; x < 127; x += 0.00917) {
        const float argument = static_cast<float>(x);
        EXPECT_NEAR(exp2_vector(argument) / std::exp2(static_cast<double>(argument)), 1, 0x1p-22) << x;
        EXPECT_NEAR(exp2_vector(8 * x) / std::exp2(8 * x), 1, 0x1p-51) << 8 * x;
    }
    EXPECT_EQ(exp2_vector(0.0f), 1.0f);
    EXPECT_EQ(exp2_vector(0.0), 1.0);
    EXPECT_EQ(exp2_vector(-127.0f), 0.0f);
    EXPECT_EQ(exp2_vector(-std::numeric_limits<float>::infinity()), 0.0f);
    EXPECT_TRUE(std::isnan(exp2_vector(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VectorMath, ActivationsAreExactFarFromZeroAndKeepNaN) {
    const double far = 1e30, nan = std::numeric_limits<double>::quiet_NaN();
    for (const ActivationFacts& facts : activation_table)
        with_activation(facts.function, [&]<Activation f>() {
            SCOPED_TRACE(facts.kind);
            const bool is_tanh = f == Activation::tanh;
            EXPECT_EQ(activated_vector<f>(far), is_tanh ? 1 : far);
            EXPECT_EQ(activated_vector<f>(static_cast<float>(far)), is_tanh ? 1 : static_cast<float>(far));
            EXPECT_NEAR(activated_vector<f>(-far), is_tanh ? -1 : 0, 1e-270);
            EXPECT_EQ(activated_vector<f>(0.0), 0);
            EXPECT_EQ(slope_vector<f>(100.0), is_tanh ? slope_vector<f>(-100.0) : 1);
            EXPECT_NEAR(slope_vector<f>(-100.0), 0, 1e-40);
            EXPECT_TRUE(std::isnan(activated_vector<f>(nan)));
        });
    EXPECT_EQ(activated_vector<Activation::tanh>(1e-200), 1e-200) << "nothing cancels";
    EXPECT_EQ(activated_vector<Activation::tanh>(-1e-30f), -1e-30f);
}

TEST(VectorDispatch, EveryInstructionSetGivesTheSameGelu) {
    const Matrix x = Matrix::normal(DataType::fp32, 1, 1003, 1, 3);
    const float* from = static_cast<const float*>(x.data());
    std::vector<float> plain(1003), wide(1003);
    const auto loop_into = [from](std::vector<float>& out) {
        return [from, to = out.data()] {
#pragma omp simd
            for (int i = 0; i < 1003; ++i) to[i] = activated_vector<Activation::gelu_tanh>(from[i]);
        };
    };
    run_x86_64(loop_into(plain));
    const auto near_plain = testing::Pointwise(testing::FloatNear(1e-6f), plain);  // FMA rounds differently
    if (vector_isa() == VectorIsa::x86_64) GTEST_SKIP() << "this CPU has no AVX2";
    run_avx2(loop_into(wide));
    EXPECT_THAT(wide, near_plain);
    if (vector_isa() != VectorIsa::avx512) GTEST_SKIP() << "this CPU has no AVX-512";
    run_avx512(loop_into(wide));
    EXPECT_THAT(wide, near_plain);
}

}  // namespace
}  // namespace kbench::cpu
