// The oracle's error bounds, against simulated implementations: right ones must pass, wrong ones must not.
#include <gtest/gtest.h>

#include <algorithm>

#include "cpu/reference/reference.h"
#include "tests/cpu/reference_data.h"

namespace kbench::reference {
namespace {

class GeluBound : public testing::Test {
  protected:
    GeluBound() {
        for (std::size_t i = 0; i < x.data.size(); ++i)
            x.data[i] = to_fp32(-6.0 + 12.0 * static_cast<double>(i) / 1000.0);
    }
    double wrong(const std::function<double(double)>& gelu, Precision precision, DataType stored) const {
        const auto elements = all_elements(1, x.columns);
        return disagreement(
            elements, bias_activation(x.view(), {}, Activation::gelu_tanh, elements),
            [&](Element e) { return gelu(x(0, e.column)); }, precision, stored);
    }
    Matrix x{1, 1001};
};

TEST_F(GeluBound, AcceptsItsOwnPrecision) {
    EXPECT_EQ(wrong([](double v) { return gelu_tanh(static_cast<float>(v)); }, Precision::fp32, DataType::fp32), 0);
    EXPECT_EQ(wrong([](double v) { return gelu_tanh(v); }, Precision::fp64, DataType::fp64), 0);
    EXPECT_EQ(wrong([](double v) { return to_fp16(gelu_tanh(v)); }, Precision::fp16, DataType::fp16), 0);
}

TEST_F(GeluBound, RefusesFp32InPlaceOfFp64) {
    EXPECT_GT(wrong([](double v) { return gelu_tanh(static_cast<float>(v)); }, Precision::fp64, DataType::fp64), 0.5);
}

TEST_F(GeluBound, RefusesTheErfForm) {
    const auto erf_form = [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); };
    EXPECT_GT(wrong(erf_form, Precision::fp32, DataType::fp32), 0.5);
}

TEST_F(GeluBound, RefusesTheSigmoidFormIn16Bits) {
    const auto sigmoid_form = [](double v) { return to_fp16(v / (1 + std::exp(-1.702 * v))); };
    EXPECT_GT(wrong(sigmoid_form, Precision::fp16, DataType::fp16), 0.3);
}

TEST_F(GeluBound, AcceptsTheHardwareTanhIn16BitsOnly) {
    const auto approximate = [](double v) {
        const double t = std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v));
        return 0.5 * v * (1 + t * (1 - 0x1p-11));
    };
    EXPECT_EQ(wrong([&](double v) { return to_fp16(approximate(v)); }, Precision::fp16, DataType::fp16), 0);
    EXPECT_GT(wrong(approximate, Precision::fp32, DataType::fp32), 0.5);
}

/// Fraction of numbers from -6 to 6 at which fp64 results of one function are out of the bounds of another.
double wrong_in_place_of(Activation computed, Activation asked) {
    Matrix x(1, 1001);
    for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = -6.0 + 12.0 * static_cast<double>(i) / 1000.0;
    const auto elements = all_elements(1, x.columns);
    const auto other = bias_activation(x.view(), {}, computed, elements);
    return disagreement(
        elements, bias_activation(x.view(), {}, asked, elements),
        [&](Element e) { return other[static_cast<std::size_t>(e.column)].value; }, Precision::fp64, DataType::fp64);
}

TEST(ActivationBound, RefusesEachFunctionInPlaceOfAnother) {
    for (const ActivationFacts& asked : activation_table)
        for (const ActivationFacts& computed : activation_table) {
            const double wrong = wrong_in_place_of(computed.function, asked.function);
            if (asked.function == computed.function)
                EXPECT_EQ(wrong, 0) << asked.kind;
            else
                EXPECT_GT(wrong, 0.4) << computed.kind << " in place of " << asked.kind;
        }
}

/// A GEMM of GPT-2 large's k on normal inputs, computed as an implementation might.
class GemmBound : public testing::TestWithParam<std::int64_t> {
  protected:
    std::int64_t k = GetParam();
    Matrix x = random_normal(24, k, 11), w = random_normal(k, 24, 12);

    /// Fraction of elements refused when the inputs, first rounded to what is stored, are rounded by `operand`, summed
    /// in steps of `block` products that `sum` rounds, and stored by `store`.
    double wrong(Rounding stored_inputs, Rounding operand, std::int64_t block, Rounding sum, Rounding store,
                 Precision precision, DataType stored) const {
        const Matrix a = x.map(stored_inputs), b = w.map(stored_inputs);
        const Matrix ra = a.map(operand), rb = b.map(operand);
        const auto elements = all_elements(24, 24);
        const auto expected = gemm({.m = 24, .n = 24, .k = k}, a.view(), b.view(), {}, std::nullopt, {}, elements);
        const auto compute = [&](Element e) {
            double total = 0;
            for (std::int64_t first = 0; first < k; first += block) {
                double partial = 0;
                for (std::int64_t i = first; i < std::min(first + block, k); ++i)
                    partial += ra(e.row, i) * rb(i, e.column);
                total = sum(total + partial);
            }
            return store(total);
        };
        return disagreement(elements, expected, compute, precision, stored);
    }
};
INSTANTIATE_TEST_SUITE_P(Lengths, GemmBound, testing::Values(64, 1280, 5120), testing::PrintToStringParamName());

double tensor_core_sum(double x) { return truncated(x, 24); }
double tf32_truncated(double x) { return truncated(x, 11); }

TEST_P(GemmBound, AcceptsCorrectSums) {
    EXPECT_EQ(wrong(to_fp32, exactly, 1, to_fp32, to_fp32, Precision::fp32, DataType::fp32), 0);
    EXPECT_EQ(wrong(exactly, exactly, 8, exactly, exactly, Precision::fp64, DataType::fp64), 0);
    EXPECT_EQ(wrong(to_fp16, exactly, 16, tensor_core_sum, to_fp16, Precision::fp16, DataType::fp16), 0);
    EXPECT_EQ(wrong(to_fp16, exactly, 16, tensor_core_sum, to_fp32, Precision::fp16, DataType::fp32), 0) << "upcast";
    EXPECT_EQ(wrong(to_bf16, exactly, 16, tensor_core_sum, to_bf16, Precision::bf16, DataType::bf16), 0);
    EXPECT_EQ(wrong(to_fp32, to_tf32, 8, tensor_core_sum, to_fp32, Precision::tf32, DataType::fp32), 0);
    EXPECT_EQ(wrong(to_fp32, tf32_truncated, 8, tensor_core_sum, to_fp32, Precision::tf32, DataType::fp32), 0);
}

TEST_P(GemmBound, RefusesTf32InPlaceOfFp32) {
    EXPECT_GT(wrong(to_fp32, to_tf32, 8, to_fp32, to_fp32, Precision::fp32, DataType::fp32), 0.3);
}

TEST_P(GemmBound, RefusesFp32InPlaceOfFp64) {
    EXPECT_GT(wrong(exactly, exactly, 1, to_fp32, exactly, Precision::fp64, DataType::fp64), 0.9) << "sums";
    EXPECT_GT(wrong(exactly, to_fp32, 8, exactly, exactly, Precision::fp64, DataType::fp64), 0.9) << "operands";
}

TEST_P(GemmBound, RefusesBf16InPlaceOfFp16) {
    EXPECT_GT(wrong(to_fp16, exactly, 16, tensor_core_sum, to_bf16, Precision::fp16, DataType::fp16), 0.3) << "result";
    EXPECT_GT(wrong(to_fp16, to_bf16, 16, tensor_core_sum, to_fp16, Precision::fp16, DataType::fp16), 0.3)
        << "operands";
}

TEST_P(GemmBound, RefusesBf16InPlaceOfTf32) {
    EXPECT_GT(wrong(to_fp32, to_bf16, 8, to_fp32, to_fp32, Precision::tf32, DataType::fp32), 0.03);
}

TEST_P(GemmBound, RefusesSumsKeptIn16Bits) {
    EXPECT_GT(wrong(to_fp16, exactly, 16, to_fp16, to_fp16, Precision::fp16, DataType::fp16), 0.1);
}

/// Layer norm in fp32 of rows whose mean is `offset` deviations away from zero.
class LayerNormBound : public testing::TestWithParam<double> {
  protected:
    static constexpr std::int64_t width = 1280;
    Matrix x = random_normal(4, width, 1, GetParam()).map(to_fp32), weight = random_normal(1, width, 2).map(to_fp32),
           bias = random_normal(1, width, 3).map(to_fp32);

    /// `statistics` gives mean and rstd of a row, in T.
    template <class T>
    double wrong(const std::function<std::pair<T, T>(const double*)>& statistics, Precision precision,
                 DataType stored) const {
        const auto elements = all_elements(4, width);
        const auto expected = layer_norm({.rows = 4, .width = width, .epsilon = 1e-5}, x.view(), {}, {}, weight.view(),
                                         bias.view(), elements);
        const auto compute = [&](Element e) -> double {
            const auto [mean, rstd] = statistics(&x.data[e.row * width]);
            return (static_cast<T>(x(e.row, e.column)) - mean) * rstd * static_cast<T>(weight(0, e.column)) +
                   static_cast<T>(bias(0, e.column));
        };
        return disagreement(elements, expected, compute, precision, stored);
    }
    template <class T>
    static std::pair<T, T> two_passes(const double* row, T divisor = width, T epsilon = static_cast<T>(1e-5)) {
        T mean = 0, squares = 0;
        for (std::int64_t c = 0; c < width; ++c) mean += static_cast<T>(row[c]);
        mean /= width;
        for (std::int64_t c = 0; c < width; ++c) {
            const T d = static_cast<T>(row[c]) - mean;
            squares += d * d;
        }
        return {mean, 1 / std::sqrt(squares / divisor + epsilon)};
    }
};
INSTANTIATE_TEST_SUITE_P(Offsets, LayerNormBound, testing::Values(0.0, 3.0, 30.0));

TEST_P(LayerNormBound, AcceptsTwoPassesInItsPrecision) {
    EXPECT_EQ(wrong<float>([](const double* row) { return two_passes<float>(row); }, Precision::fp32, DataType::fp32),
              0);
    EXPECT_EQ(wrong<double>([](const double* row) { return two_passes<double>(row); }, Precision::fp64, DataType::fp64),
              0);
}

TEST_P(LayerNormBound, RefusesFp32InPlaceOfFp64) {
    EXPECT_GT(wrong<float>([](const double* row) { return two_passes<float>(row); }, Precision::fp64, DataType::fp64),
              0.9);
}

TEST_P(LayerNormBound, RefusesTheUnbiasedVariance) {
    const auto unbiased = [](const double* row) { return two_passes<double>(row, width - 1); };
    EXPECT_GT(wrong<double>(unbiased, Precision::fp32, DataType::fp32), 0.1);
}

TEST(ReferenceLayerNorm, OnePassVarianceOfRowsFarFromZeroIsRefused) {
    constexpr int width = 1280;
    const Matrix x = random_normal(1, width, 1, 1000).map(to_fp32),
                 ones = random_normal(1, width, 2).map([](double) { return 1.0; });
    float sum = 0, squares = 0;
    for (double v : x.data) sum += static_cast<float>(v), squares += static_cast<float>(v) * static_cast<float>(v);
    const float mean = sum / width, rstd = 1 / std::sqrt(std::abs(squares / width - mean * mean) + 1e-5f);
    const auto elements = all_elements(1, width);
    const auto expected =
        layer_norm({.rows = 1, .width = width, .epsilon = 1e-5}, x.view(), {}, {}, ones.view(), ones.view(), elements);
    const auto compute = [&](Element e) { return (static_cast<float>(x(0, e.column)) - mean) * rstd + 1.0f; };
    EXPECT_GT(disagreement(elements, expected, compute, Precision::fp32, DataType::fp32), 0.2);
}

TEST(Agreement, InfinityAgreesWithItselfOnlyAndNanWithNothing) {
    const Expected masked{-infinity, 0, 0}, one{1, 1, 1};
    EXPECT_TRUE(agrees(-infinity, masked, Precision::fp16, DataType::fp16));
    EXPECT_FALSE(agrees(infinity, masked, Precision::fp16, DataType::fp16));
    EXPECT_FALSE(agrees(-65504, masked, Precision::fp16, DataType::fp16));
    EXPECT_FALSE(agrees(std::nan(""), masked, Precision::fp16, DataType::fp16));
    EXPECT_FALSE(agrees(std::nan(""), one, Precision::fp16, DataType::fp16));
    EXPECT_FALSE(agrees(infinity, one, Precision::fp16, DataType::fp16));
    EXPECT_EQ(error_bound(masked, Precision::fp32, DataType::fp32), 0);
}

class SoftmaxBound : public testing::TestWithParam<double> {
  protected:
    Matrix scores = make_scores();
    static Matrix make_scores() {
        Matrix s = random_normal(8, 300, 1);
        for (double& x : s.data) x = to_fp32(x * GetParam());
        for (std::int64_t r = 0; r < s.rows; ++r)
            for (std::int64_t c = 20 * (r + 1); c < s.columns; ++c) s(r, c) = -infinity;
        return s;
    }
    template <class T>
    double wrong(Precision precision, DataType stored, std::int64_t keys_lost = 0) const {
        const auto elements = all_elements(8, 300);
        const auto expected = softmax({.rows = 8, .width = 300, .upcast = false}, scores.view(), elements);
        const auto compute = [&](Element e) -> double {
            T largest = -std::numeric_limits<T>::infinity(), sum = 0;
            for (int c = 0; c < 300; ++c) largest = std::max(largest, static_cast<T>(scores(e.row, c)));
            for (std::int64_t c = keys_lost; c < 300; ++c) sum += std::exp(static_cast<T>(scores(e.row, c)) - largest);
            return std::exp(static_cast<T>(scores(e.row, e.column)) - largest) / sum;
        };
        return disagreement(elements, expected, compute, precision, stored);
    }
};
INSTANTIATE_TEST_SUITE_P(Spreads, SoftmaxBound, testing::Values(1.0, 10.0, 1000.0));

TEST_P(SoftmaxBound, AcceptsItsPrecisionAndRefusesALowerOne) {
    EXPECT_EQ(wrong<float>(Precision::fp32, DataType::fp32), 0);
    EXPECT_EQ(wrong<double>(Precision::fp64, DataType::fp64), 0);
    if (GetParam() == 1.0) {
        EXPECT_GT(wrong<float>(Precision::fp64, DataType::fp64), 0.2);
    }
}

TEST_P(SoftmaxBound, MaskedEntriesAreExactlyZero) {
    const std::vector<Element> masked{{0, 20}, {0, 299}, {7, 160}};
    for (const Expected& e : softmax({.rows = 8, .width = 300, .upcast = false}, scores.view(), masked)) {
        EXPECT_EQ(e.value, 0);
        EXPECT_EQ(e.magnitude, 0);
        EXPECT_FALSE(agrees(1e-6, e, Precision::fp16, DataType::fp16));
    }
}

TEST(ReferenceSoftmax, LosingOneKeyIsRefused) {
    // 20 to 160 keys in fp16: the lost one weighs 0.6 % or more where the storage rounds by 0.05 %.
    const Matrix scores(2, 160);
    const auto elements = all_elements(2, 160);
    const auto expected = softmax({.rows = 2, .width = 160, .upcast = false}, scores.view(), elements);
    const auto one_less = [](Element) { return to_fp16(1.0 / 159); };
    EXPECT_EQ(disagreement(elements, expected, one_less, Precision::fp16, DataType::fp16), 1.0);
}

/// Fused attention as a tiled kernel computes it: blocks of keys, online softmax, p unnormalised.
struct TiledAttention {
    Rounding operand = exactly;  ///< for q, k and v
    Rounding weight = exactly;   ///< for p in front of p v
    Rounding arithmetic = exactly;
    Rounding store = exactly;
    int extra_keys = 0;  ///< an error in the mask
    double scale_factor = 1.0;

    double operator()(const Attention& op, const Matrix& qkv, Element e) const {
        constexpr std::int64_t block = 64;
        const AttentionShape& s = op.shape;
        const std::int64_t query = e.row % s.seq, first_row = e.row - query, head = e.column / s.head_size;
        const std::int64_t q = head * s.head_size, k = q + s.heads * s.head_size, v = k + s.heads * s.head_size;
        const std::int64_t keys = std::clamp<std::int64_t>(query + 1 + extra_keys, 1, s.seq);
        double largest = -infinity, sum = 0, out = 0;
        for (std::int64_t first = 0; first < keys; first += block) {
            std::vector<double> scores;
            for (std::int64_t j = first; j < std::min(first + block, keys); ++j) {
                double score = 0;
                for (std::int64_t d = 0; d < s.head_size; ++d)
                    score = arithmetic(score + operand(qkv(e.row, q + d)) * operand(qkv(first_row + j, k + d)));
                scores.push_back(arithmetic(score * op.scale * scale_factor));
            }
            const double previous = largest;
            for (double score : scores) largest = std::max(largest, score);
            const double correction = arithmetic(std::exp(previous - largest));
            sum = arithmetic(sum * correction);
            out = arithmetic(out * correction);
            for (std::size_t j = 0; j < scores.size(); ++j) {
                const double p = arithmetic(std::exp(arithmetic(scores[j] - largest)));
                sum = arithmetic(sum + p);
                const std::int64_t row = first_row + first + static_cast<std::int64_t>(j);
                out = arithmetic(out + weight(p) * operand(qkv(row, v + e.column % s.head_size)));
            }
        }
        return store(arithmetic(out / sum));
    }
};

class AttentionBound : public testing::Test {
  protected:
    static constexpr AttentionShape shape{.batch = 2, .heads = 2, .seq = 300, .head_size = 64};

    /// Fraction of refused elements with query numbers in [first, last], for inputs rounded by `inputs`.
    double wrong(const TiledAttention& attention, Rounding inputs, Precision precision, DataType stored,
                 std::int64_t first = 0, std::int64_t last = shape.seq - 1, double scale = 0.125) const {
        const Attention op{shape, scale};
        const Matrix qkv = random_normal(shape.batch * shape.seq, 3 * 2 * 64, 5).map(inputs);
        std::vector<Element> elements;
        for (std::int64_t b = 0; b < shape.batch; ++b)
            for (std::int64_t i = first; i <= last; i += std::max<std::int64_t>(1, (last - first) / 16))
                for (std::int64_t c = 1; c < 128; c += 9) elements.push_back({b * shape.seq + i, c});
        return disagreement(
            elements, reference::attention(op, qkv.view(), elements), [&](Element e) { return attention(op, qkv, e); },
            precision, stored);
    }

    const TiledAttention fp16{.weight = to_fp16, .arithmetic = to_fp32, .store = to_fp16};
    const TiledAttention bf16{.weight = to_bf16, .arithmetic = to_fp32, .store = to_bf16};
    const TiledAttention tf32{.operand = to_tf32, .weight = to_tf32, .arithmetic = to_fp32, .store = to_fp32};
    const TiledAttention fp32{.arithmetic = to_fp32, .store = to_fp32};
};

TEST_F(AttentionBound, AcceptsCorrectKernels) {
    EXPECT_EQ(wrong(fp16, to_fp16, Precision::fp16, DataType::fp16), 0);
    EXPECT_EQ(wrong(bf16, to_bf16, Precision::bf16, DataType::bf16), 0);
    EXPECT_EQ(wrong(tf32, to_fp32, Precision::tf32, DataType::fp32), 0);
    EXPECT_EQ(wrong(fp32, to_fp32, Precision::fp32, DataType::fp32), 0);
    EXPECT_EQ(wrong({}, exactly, Precision::fp64, DataType::fp64), 0);
}

TEST_F(AttentionBound, AcceptsCorrectKernelsWithSaturatedSoftmax) {
    for (double scale : {1.0, 8.0}) {
        EXPECT_EQ(wrong(fp16, to_fp16, Precision::fp16, DataType::fp16, 0, 299, scale), 0) << scale;
        EXPECT_EQ(wrong(bf16, to_bf16, Precision::bf16, DataType::bf16, 0, 299, scale), 0) << scale;
        EXPECT_EQ(wrong(fp32, to_fp32, Precision::fp32, DataType::fp32, 0, 299, scale), 0) << scale;
        EXPECT_EQ(wrong({}, exactly, Precision::fp64, DataType::fp64, 0, 299, scale), 0) << scale;
    }
    EXPECT_EQ(wrong(tf32, to_fp32, Precision::tf32, DataType::fp32, 0, 299, 1.0), 0);
}

TEST_F(AttentionBound, RefusesAMaskThatIsOffByOne) {
    for (int extra : {-1, 1})
        for (const auto& [first, last] : {std::pair{2, 30}, std::pair{250, 298}}) {
            const auto off = [&](TiledAttention attention) {
                attention.extra_keys = extra;
                return attention;
            };
            EXPECT_GT(wrong(off(fp16), to_fp16, Precision::fp16, DataType::fp16, first, last), 0.5)
                << extra << " " << first;
            EXPECT_GT(wrong(off(tf32), to_fp32, Precision::tf32, DataType::fp32, first, last), 0.1)
                << extra << " " << first;
            EXPECT_GT(wrong(off(fp32), to_fp32, Precision::fp32, DataType::fp32, first, last), 0.9)
                << extra << " " << first;
        }
    TiledAttention off = bf16;
    off.extra_keys = 1;
    EXPECT_GT(wrong(off, to_bf16, Precision::bf16, DataType::bf16, 2, 30), 0.5);
}

TEST_F(AttentionBound, RefusesALowerPrecision) {
    EXPECT_GT(wrong(bf16, to_fp16, Precision::fp16, DataType::fp16), 0.1) << "p and result in bf16";
    EXPECT_GT(wrong(tf32, to_fp32, Precision::fp32, DataType::fp32), 0.5);
    EXPECT_GT(wrong(fp32, exactly, Precision::fp64, DataType::fp64), 0.9);
}

TEST_F(AttentionBound, RefusesAWrongScale) {
    TiledAttention wrong_scale = fp16;
    wrong_scale.scale_factor = 1.05;
    EXPECT_GT(wrong(wrong_scale, to_fp16, Precision::fp16, DataType::fp16), 0.5);
}

}  // namespace
}  // namespace kbench::reference
