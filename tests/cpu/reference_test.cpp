// The values of the oracle, against independent formulas.
#include "cpu/reference/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/cpu/reference_data.h"

namespace kbench::reference {
namespace {

TEST(ReferenceView, DecodesEveryFp16Number) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto word = static_cast<std::uint16_t>(bits);
        const double got = View{&word, DataType::fp16, 1, 1, 1}(0, 0);
        const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
        const double magnitude = exponent == 31  ? (fraction ? std::nan("") : infinity)
                                 : exponent == 0 ? std::ldexp(fraction, -24)
                                                 : std::ldexp(1024 + fraction, exponent - 25);
        if (std::isnan(magnitude))
            EXPECT_TRUE(std::isnan(got)) << bits;
        else
            EXPECT_EQ(got, bits & 0x8000 ? -magnitude : magnitude) << bits;
    }
}

TEST(ReferenceView, DecodesTheOtherTypes) {
    const std::uint16_t bf16[] = {0x3f80, 0xc049, 0x0001, 0xff80};
    const View view{bf16, DataType::bf16, 1, 4, 4};
    EXPECT_EQ(view(0, 0), 1.0);
    EXPECT_EQ(view(0, 1), -3.140625);
    EXPECT_EQ(view(0, 2), 0x1p-133);
    EXPECT_EQ(view(0, 3), -infinity);
    const float fp32 = 0.1f;
    EXPECT_EQ((View{&fp32, DataType::fp32, 1, 1, 1}(0, 0)), 0.1f);
    const std::int32_t tokens[] = {50256, -1};
    EXPECT_EQ((View{tokens, DataType::int32, 1, 2, 2}(0, 0)), 50256.0);
    EXPECT_EQ((View{tokens, DataType::int32, 1, 2, 2}(0, 1)), -1.0);
}

TEST(ReferenceView, RowsAreItsStrideApart) {
    const double data[] = {1, 2, -1, 3, 4, -1};
    const View view{data, DataType::fp64, 2, 2, 3};
    EXPECT_EQ(view(1, 0), 3);
    EXPECT_EQ(view(1, 1), 4);
}

TEST(ReferenceEmbedding, AddsTheTokensAndThePositionsRows) {
    const std::int32_t tokens[] = {2, 0, 1, 2};
    const Matrix wte = random_normal(3, 5, 1), wpe = random_normal(4, 5, 2);
    const auto elements = all_elements(4, 5);
    for (const View& view : {View{tokens, DataType::int32, 1, 4, 4}, View{tokens, DataType::int32, 4, 1, 1}}) {
        const auto expected = embedding({.rows = 4, .seq = 2, .width = 5, .vocab = 3, .positions = 4}, view, wte.view(),
                                        wpe.view(), elements);
        for (std::size_t i = 0; i < elements.size(); ++i) {
            const auto [row, column] = elements[i];
            EXPECT_EQ(expected[i].value, wte(tokens[row], column) + wpe(row % 2, column));
        }
    }
}

TEST(ReferenceResidualAdd, AddsWithABoundRelativeToItsTerms) {
    const Matrix x = random_normal(3, 4, 1), residual = random_normal(3, 4, 2);
    const auto elements = all_elements(3, 4);
    const auto expected = residual_add(x.view(), residual.view(), elements);
    for (std::size_t i = 0; i < elements.size(); ++i) {
        EXPECT_EQ(expected[i].value, x.data[i] + residual.data[i]);
        EXPECT_EQ(expected[i].magnitude, std::abs(x.data[i]) + std::abs(residual.data[i]));
    }
}

TEST(ReferenceBiasGelu, AddsTheBiasOfTheColumn) {
    const Matrix x = random_normal(3, 4, 1), bias = random_normal(1, 4, 2);
    const auto elements = all_elements(3, 4);
    const auto plain = bias_activation(x.view(), bias.view(), std::nullopt, elements);
    const auto curved = bias_activation(x.view(), bias.view(), Activation::gelu_tanh, elements);
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const double sum = x.data[i] + bias.data[i % 4];
        EXPECT_EQ(plain[i].value, sum);
        EXPECT_NEAR(curved[i].value, gelu_tanh(sum), 1e-15);
    }
}

TEST(ReferenceActivations, AreTheirDefinitions) {
    const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
    const std::map<Activation, std::function<double(double)>> definitions{
        {Activation::gelu_tanh, [](double v) { return gelu_tanh(v); }},
        {Activation::gelu_fast,
         [](double v) { return 0.5 * v * (1 + std::tanh(v * 0.7978845608 * (1 + 0.044715 * v * v))); }},
        {Activation::gelu_erf, [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); }},
        {Activation::quick_gelu, [&](double v) { return v * logistic(1.702 * v); }},
        {Activation::relu, [](double v) { return std::max(v, 0.0); }},
        {Activation::silu, [&](double v) { return v * logistic(v); }},
        {Activation::tanh, [](double v) { return std::tanh(v); }}};
    const Matrix x = random_normal(30, 40, 1);
    const auto elements = all_elements(30, 40);
    for (const ActivationFacts& facts : activation_table) {
        const auto expected = bias_activation(x.view(), {}, facts.function, elements);
        for (std::size_t i = 0; i < elements.size(); ++i)
            EXPECT_NEAR(expected[i].value, definitions.at(facts.function)(x.data[i]), 1e-15) << facts.kind;
    }
}

TEST(ReferenceGemm, IsTheProductWithItsEpilogueInOrder) {
    const Matrix x = random_normal(5, 37, 1), w = random_normal(37, 21, 2), bias = random_normal(1, 21, 3),
                 residual = random_normal(5, 21, 4);
    const Gemm op{.m = 5, .n = 21, .k = 37};
    const auto elements = all_elements(5, 21);
    const auto product = gemm(op, x.view(), w.view(), {}, std::nullopt, {}, elements);
    const auto full = gemm(op, x.view(), w.view(), bias.view(), Activation::gelu_tanh, residual.view(), elements);
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const auto [row, column] = elements[i];
        double value = 0, magnitude = 0;
        for (int k = 0; k < 37; ++k) value += x(row, k) * w(k, column), magnitude += std::abs(x(row, k) * w(k, column));
        EXPECT_NEAR(product[i].value, value, 1e-13);
        EXPECT_NEAR(product[i].magnitude, magnitude, 1e-13);
        EXPECT_EQ(product[i].terms, 37);
        EXPECT_NEAR(full[i].value, gelu_tanh(value + bias(0, column)) + residual(row, column), 1e-13);
        EXPECT_EQ(full[i].terms, 39);
    }
}

TEST(ReferenceGemm, TransposedWeightGivesTheSame) {
    const Matrix x = random_normal(3, 20, 1), w = random_normal(20, 40, 2);
    Matrix transposed(40, 20);
    for (int r = 0; r < 20; ++r)
        for (int c = 0; c < 40; ++c) transposed(c, r) = w(r, c);
    const auto elements = all_elements(3, 40);
    const auto plain = gemm({.m = 3, .n = 40, .k = 20}, x.view(), w.view(), {}, std::nullopt, {}, elements);
    const auto other = gemm({.m = 3, .n = 40, .k = 20, .weight_transposed = true}, x.view(), transposed.view(), {},
                            std::nullopt, {}, elements);
    for (std::size_t i = 0; i < elements.size(); ++i) EXPECT_EQ(plain[i].value, other[i].value);
}

TEST(ReferenceGemm, ChosenElementsEqualThoseOfTheWhole) {
    const Matrix x = random_normal(9, 16, 1), w = random_normal(16, 50, 2);
    const Gemm op{.m = 9, .n = 50, .k = 16};
    const auto whole = gemm(op, x.view(), w.view(), {}, std::nullopt, {}, all_elements(9, 50));
    const std::vector<Element> chosen{{0, 49}, {2, 3}, {2, 17}, {7, 0}, {8, 17}, {8, 49}};
    const auto some = gemm(op, x.view(), w.view(), {}, std::nullopt, {}, chosen);
    for (std::size_t i = 0; i < chosen.size(); ++i)
        EXPECT_EQ(some[i].value, whole[chosen[i].row * 50 + chosen[i].column].value);
}

TEST(ReferenceLayerNorm, NormalisesTheSumOfWhatIsGiven) {
    const Matrix x = random_normal(4, 50, 1), pre_bias = random_normal(1, 50, 2), residual = random_normal(4, 50, 3),
                 weight = random_normal(1, 50, 4), bias = random_normal(1, 50, 5);
    const auto elements = all_elements(4, 50);
    const LayerNorm op{.rows = 4, .width = 50, .epsilon = 1e-2};
    for (bool with_bias : {false, true})
        for (bool with_residual : {false, true}) {
            const View p = with_bias ? pre_bias.view() : View{}, r = with_residual ? residual.view() : View{};
            const auto norm = layer_norm(op, x.view(), p, r, weight.view(), bias.view(), elements);
            const auto sum = layer_norm_sum(op, x.view(), p, r, elements);
            for (std::size_t i = 0; i < elements.size(); ++i) {
                const auto s = [&](std::int64_t c) {
                    return x(elements[i].row, c) + (with_bias ? pre_bias(0, c) : 0) +
                           (with_residual ? residual(elements[i].row, c) : 0);
                };
                double mean = 0, square = 0;
                for (int c = 0; c < 50; ++c) mean += s(c) / 50, square += s(c) * s(c) / 50;
                const std::int64_t c = elements[i].column;
                EXPECT_NEAR(norm[i].value,
                            (s(c) - mean) / std::sqrt(square - mean * mean + 1e-2) * weight(0, c) + bias(0, c), 1e-12);
                EXPECT_EQ(sum[i].value, s(c));
            }
        }
}

TEST(ReferenceScaleMask, ScalesUpToTheDiagonalOfEachHeadAndHidesTheRest) {
    const Matrix scores = random_normal(2 * 3 * 4, 4, 1);
    const auto elements = all_elements(24, 4);
    const auto expected =
        scale_mask({.shape = {.batch = 2, .heads = 3, .seq = 4, .head_size = 8}, .scale = 0.3, .upcast = false},
                   scores.view(), elements);
    for (std::size_t i = 0; i < elements.size(); ++i)
        EXPECT_EQ(expected[i].value, elements[i].column <= elements[i].row % 4 ? 0.3 * scores.data[i] : -infinity);
}

TEST(ReferenceAttention, UnfusedOpsInSequenceGiveTheFusedOne) {
    const AttentionShape shape{.batch = 2, .heads = 3, .seq = 7, .head_size = 5};
    const Matrix qkv = random_normal(14, 45, 1);
    const auto matrix = [](std::int64_t rows, std::int64_t columns, auto values) {
        Matrix m(rows, columns);
        for (std::size_t i = 0; i < values.size(); ++i) m.data[i] = values[i].value;
        return m;
    };
    const auto square = all_elements(42, 7), output = all_elements(14, 15);
    const Matrix scores = matrix(42, 7, attention_scores({shape, false}, qkv.view(), square));
    const Matrix masked = matrix(42, 7, scale_mask({shape, 0.4, false}, scores.view(), square));
    const Matrix p = matrix(42, 7, softmax({42, 7, false}, masked.view(), square));
    const auto unfused = attention_context({shape}, p.view(), qkv.view(), output);
    const auto fused = attention({shape, 0.4}, qkv.view(), output);
    for (std::size_t i = 0; i < output.size(); ++i) EXPECT_NEAR(unfused[i].value, fused[i].value, 1e-14);
    // By hand, the last query of the second sequence's second head with its first key.
    double product = 0;
    for (int d = 0; d < 5; ++d) product += qkv(13, 5 + d) * qkv(7, 15 + 5 + d);
    EXPECT_NEAR(scores((1 * 3 + 1) * 7 + 6, 0), product, 1e-14);
}

TEST(ReferenceAttention, FirstQueryReturnsItsOwnValue) {
    const AttentionShape shape{.batch = 2, .heads = 2, .seq = 3, .head_size = 4};
    const Matrix qkv = random_normal(6, 24, 1);
    const std::vector<Element> elements{{0, 0}, {0, 7}, {3, 5}};
    const auto expected = attention({shape, 0.5}, qkv.view(), elements);
    for (std::size_t i = 0; i < elements.size(); ++i)
        EXPECT_EQ(expected[i].value, qkv(elements[i].row, 16 + elements[i].column));
}

}  // namespace
}  // namespace kbench::reference
