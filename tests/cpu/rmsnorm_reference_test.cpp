// The reference of RMS norm: its values by hand, and its bound against simulated implementations.
#include <gtest/gtest.h>

#include "cpu/reference/reference.h"
#include "tests/cpu/reference_data.h"

namespace kbench::reference {
namespace {

TEST(ReferenceRmsNorm, DividesByTheRootOfTheMeanSquare) {
    const Matrix weight = [] {
        Matrix w(1, 2);
        w.data = {10, -1};
        return w;
    }();
    Matrix x(2, 2);
    x.data = {1, 7, 0, 0};  // the first row's mean square is 25; the second has none
    const auto elements = all_elements(2, 2);
    const auto plain = rms_norm({2, 2, 0}, x.view(), weight.view(), std::span(elements).first(2));
    EXPECT_DOUBLE_EQ(plain[0].value, 2);
    EXPECT_DOUBLE_EQ(plain[1].value, -1.4);
    const auto with_epsilon = rms_norm({2, 2, 11}, x.view(), weight.view(), elements);  // sqrt(25 + 11) = 6
    EXPECT_DOUBLE_EQ(with_epsilon[0].value, 10.0 / 6);
    EXPECT_DOUBLE_EQ(with_epsilon[1].value, -7.0 / 6);
    EXPECT_EQ(with_epsilon[2].value, 0);
    EXPECT_EQ(with_epsilon[3].value, 0);
}

class RmsNormBound : public testing::TestWithParam<std::int64_t> {
  protected:
    std::int64_t width = GetParam();
    Matrix x = random_normal(4, width, 1).map(to_fp32), weight = random_normal(1, width, 2).map(to_fp32);
    std::vector<Element> elements = all_elements(4, width);
    std::vector<Expected> expected = rms_norm({4, width, 1e-5}, x.view(), weight.view(), elements);

    /// Computed in T with one sum, over the squares of x - `shift`.
    template <class T>
    double wrong(Precision precision, DataType stored, T divisor, T shift = 0) const {
        const auto compute = [&](Element e) -> double {
            T squares = 0;
            for (std::int64_t c = 0; c < width; ++c) {
                const T value = static_cast<T>(x(e.row, c)) - shift;
                squares += value * value;
            }
            const T rstd = 1 / std::sqrt(squares / divisor + static_cast<T>(1e-5));
            return static_cast<T>(x(e.row, e.column)) * rstd * static_cast<T>(weight(0, e.column));
        };
        return disagreement(elements, expected, compute, precision, stored);
    }
};
INSTANTIATE_TEST_SUITE_P(Widths, RmsNormBound, testing::Values(1, 7, 1280), testing::PrintToStringParamName());

TEST_P(RmsNormBound, AcceptsOneSumInItsPrecision) {
    EXPECT_EQ(wrong<float>(Precision::fp32, DataType::fp32, static_cast<float>(width)), 0);
    EXPECT_EQ(wrong<double>(Precision::fp64, DataType::fp64, static_cast<double>(width)), 0);
}

TEST_P(RmsNormBound, RefusesFp32InPlaceOfFp64) {
    EXPECT_GT(wrong<float>(Precision::fp64, DataType::fp64, static_cast<float>(width)), 0.7);
}

TEST_P(RmsNormBound, RefusesADivisorThatIsOffByOneAndAMeanThatIsSubtracted) {
    EXPECT_EQ(wrong<double>(Precision::fp32, DataType::fp32, static_cast<double>(width + 1)), 1);
    EXPECT_EQ(wrong<double>(Precision::fp32, DataType::fp32, static_cast<double>(width), 0.1), 1);
}

TEST_P(RmsNormBound, RefusesAnErrorJustAboveIt) {
    for (const auto& [precision, stored] :
         {std::pair{Precision::fp16, DataType::fp16}, std::pair{Precision::bf16, DataType::bf16},
          std::pair{Precision::fp32, DataType::fp32}})
        for (const Expected& e : expected) {
            const double bound = error_bound(e, precision, stored);
            ASSERT_TRUE(agrees(e.value + 0.99 * bound, e, precision, stored));
            ASSERT_FALSE(agrees(e.value + 1.01 * bound, e, precision, stored));
            // No looser than storing and 64 roundings of the sum, 1.5 sqrt(1280) of them.
            ASSERT_LT(bound, std::abs(e.value) * (unit_roundoff(stored) + 64 * 0x1p-23) + 0x1p-24);
        }
}

}  // namespace
}  // namespace kbench::reference
