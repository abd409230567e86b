// Products in bf16 by packed panels against sums in fp64: shapes that fill neither vectors nor pairs, strides, and NaN.
#include "cpu/native/bf16_panels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "cpu/native/half.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::Matrix;

constexpr float untouched = -77;
/// Between rows of x and sums, in elements: more than a vector, so that what is stored behind a row is seen.
constexpr std::int64_t gap = 17;

/// x [rows, depth] and a weight [depth, columns], or its transpose, whose values normal numbers round to.
struct Problem {
    std::int64_t rows, depth, columns;
    bool transposed;
    Matrix x, weight;

    Problem(std::int64_t r, std::int64_t d, std::int64_t c, bool is_transposed)
        : rows(r),
          depth(d),
          columns(c),
          transposed(is_transposed),
          x(Matrix::normal(DataType::bf16, r, d + gap, 1)),
          weight(Matrix::normal(DataType::bf16, is_transposed ? c : d, is_transposed ? d : c, 2)) {
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t k = depth; k < depth + gap; ++k) set_x(row, k, std::numeric_limits<float>::quiet_NaN());
        // The last row ends where its memory does, so that a sanitizer sees a read behind it.
        x.bytes.resize(x.bytes.size() - gap * sizeof(BFloat16));
        x.bytes.shrink_to_fit();
    }
    void set_x(std::int64_t row, std::int64_t k, float value) {
        store(reinterpret_cast<BFloat16*>(x.bytes.data())[row * (depth + gap) + k], value);
    }
    double w(std::int64_t k, std::int64_t j) const { return transposed ? weight(j, k) : weight(k, j); }

    /// [rows, columns + gap]
    std::vector<float> run() const {
        const Bf16Panels panels(rows, depth, columns);
        test::Workspace packed(panels.bytes());
        panels.pack(static_cast<const BFloat16*>(weight.data()), transposed ? 1 : columns, transposed ? depth : 1,
                    packed.data());
        std::vector<float> sums(static_cast<std::size_t>(rows * (columns + gap)), untouched);
        panels.multiply(static_cast<const BFloat16*>(x.data()), depth + gap, packed.data(), sums.data(), columns + gap);
        return sums;
    }
};

class Bf16PanelsTest : public testing::TestWithParam<std::int64_t> {
  protected:
    void SetUp() override {
        if (!has_bf16_instructions()) GTEST_SKIP() << "this CPU has no AVX512_BF16";
    }
    /// Calls `check` for all depths, columns and orders of the weight.
    template <class Check>
    void for_problems(const Check& check) const {
        for (const std::int64_t depth : {1, 2, 31, 33, 1024})
            for (const std::int64_t columns : {1, 15, 16, 17, 64, 250, 256, 272})
                for (const bool transposed : {false, true}) {
                    SCOPED_TRACE("depth " + std::to_string(depth) + ", columns " + std::to_string(columns) +
                                 (transposed ? ", transposed" : ""));
                    check(Problem(GetParam(), depth, columns, transposed));
                }
    }
};

TEST_P(Bf16PanelsTest, AreSumsOfProductsAndNothingBesideThem) {
    for_problems([](const Problem& p) {
        const std::vector<float> sums = p.run();
        for (std::int64_t row = 0; row < p.rows; ++row)
            for (std::int64_t j = 0; j < p.columns + gap; ++j) {
                const float computed = sums[static_cast<std::size_t>(row * (p.columns + gap) + j)];
                if (j >= p.columns) {
                    ASSERT_EQ(computed, untouched) << "behind row " << row;
                    continue;
                }
                double expected = 0, size = 0;
                for (std::int64_t k = 0; k < p.depth; ++k) {
                    const double product = p.x(row, k) * p.w(k, j);
                    expected += product;
                    size += std::abs(product);
                }
                // Each addition rounds once, by half an ulp of a sum that is at most `size`.
                ASSERT_NEAR(computed, expected, static_cast<double>(p.depth) * 0x1p-24 * size)
                    << "row " << row << ", column " << j;
            }
    });
}

TEST_P(Bf16PanelsTest, NaNReachesAllSumsOfItsRowAlone) {
    for (const std::int64_t depth : {1, 2, 33})
        for (const std::int64_t at : {std::int64_t{0}, depth - 1}) {
            Problem p(GetParam(), depth, 37, false);
            std::fill(p.weight.bytes.begin(), p.weight.bytes.end(), std::byte{});
            p.set_x(p.rows - 1, at, std::numeric_limits<float>::quiet_NaN());
            const std::vector<float> sums = p.run();
            for (std::int64_t row = 0; row < p.rows; ++row)
                for (std::int64_t j = 0; j < p.columns; ++j)
                    ASSERT_EQ(std::isnan(sums[static_cast<std::size_t>(row * (p.columns + gap) + j)]),
                              row == p.rows - 1)
                        << "depth " << depth << ", x " << at << ", row " << row << ", column " << j;
        }
}

INSTANTIATE_TEST_SUITE_P(Rows, Bf16PanelsTest, testing::Range(std::int64_t{1}, Bf16Panels::most_rows + 1));

}  // namespace
}  // namespace kbench::cpu
