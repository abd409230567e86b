// Conversions against independent rounding: exact scaling by std::ldexp and std::nearbyint in fp64.
#include "bench/plan/data/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace kbench {
namespace {

/// `value` rounded to a binary format with `digits` bits of precision and exponents down to `min_exponent`.
double rounded(double value, int digits, int min_exponent, double largest) {
    if (value == 0 || !std::isfinite(value)) return value;
    const int exponent = std::max(std::ilogb(value), min_exponent);
    const double result = std::ldexp(std::nearbyint(std::ldexp(value, digits - 1 - exponent)), exponent - digits + 1);
    return std::fabs(result) > largest ? std::copysign(INFINITY, value) : result;
}

std::vector<float> difficult_values() {
    std::vector<float> values{0.0f,
                              -0.0f,
                              65504.0f,
                              65519.996f,
                              65520.0f,
                              -65520.0f,
                              1e30f,
                              6.1e-5f,
                              0x1p-14f,
                              0x1p-24f,
                              0x1p-25f,
                              0x1.8p-24f,
                              0x1.002p0f,
                              0x1.006p0f,
                              INFINITY,
                              -INFINITY,
                              0x1p-25f + 0x1p-40f,
                              0x1.ffcp-15f,
                              0x1.fffp-15f,
                              3.4e38f,
                              1e-40f,
                              0x1.0080p0f,
                              0x1.0180p0f,
                              std::numeric_limits<float>::max()};
    std::mt19937 bits(1);
    for (int i = 0; i < 200000; ++i) {
        const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits()));
        if (!std::isnan(value)) values.push_back(value);
        values.push_back(std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits())), -31 - i % 30));
    }
    return values;
}

/// Back and forth through `type`, as fp64.
std::vector<double> through(DataType type, const std::vector<float>& values) {
    std::vector<std::uint16_t> stored(values.size());
    std::vector<double> back(values.size());
    convert(DataType::fp32, values.data(), type, stored.data(), static_cast<std::int64_t>(values.size()));
    convert(type, stored.data(), DataType::fp64, back.data(), static_cast<std::int64_t>(values.size()));
    return back;
}

TEST(Convert, Fp16RoundsToNearestEvenWithSubnormalsAndInfinities) {
    const std::vector<float> values = difficult_values();
    const std::vector<double> actual = through(DataType::fp16, values);
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(actual[i], rounded(values[i], 11, -14, 65504)) << std::hexfloat << values[i];
}

TEST(Convert, Bf16RoundsToNearestEven) {
    const std::vector<float> values = difficult_values();
    const std::vector<double> actual = through(DataType::bf16, values);
    for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(actual[i], rounded(values[i], 8, -126, 0x1.fep127)) << std::hexfloat << values[i];
}

TEST(Convert, EveryFp16SurvivesFp32) {
    std::vector<std::uint16_t> all(1 << 16), back(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> wide(all.size());
    convert(DataType::fp16, all.data(), DataType::fp32, wide.data(), 1 << 16);
    convert(DataType::fp32, wide.data(), DataType::fp16, back.data(), 1 << 16);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (std::isnan(wide[i]))
            EXPECT_EQ(back[i], all[i] | 0x200) << i;  // quiet
        else
            EXPECT_EQ(back[i], all[i]) << i;
    }
    EXPECT_EQ(wide[0x0001], 0x1p-24f);
    EXPECT_EQ(wide[0x3c00], 1.0f);
    EXPECT_EQ(wide[0xfbff], -65504.0f);
}

TEST(Convert, NanStaysNan) {
    // A NaN whose payload lies only in the bits that are cut off must not become an infinity.
    const std::vector<float> values{std::bit_cast<float>(0x7f800001u), NAN, -NAN};
    for (const DataType type : {DataType::fp16, DataType::bf16})
        for (const double value : through(type, values)) EXPECT_TRUE(std::isnan(value)) << name(type);
}

TEST(Convert, Fp64ToFp32RoundsOnce) {
    const std::vector<double> values{1 + 0x1p-24 + 0x1p-50, 1 + 0x1p-24, 1e300, -1e-320};
    std::vector<float> actual(values.size());
    convert(DataType::fp64, values.data(), DataType::fp32, actual.data(), 4);
    EXPECT_EQ(actual, (std::vector<float>{1 + 0x1p-23f, 1.0f, INFINITY, -0.0f}));
}

TEST(Convert, ReadsAnUnalignedSource) {
    const std::vector<float> values{1.5f, -2.25f, 3.0f};
    std::vector<char> shifted(1 + 12);
    std::memcpy(shifted.data() + 1, values.data(), 12);
    std::vector<double> wide(3);
    convert(DataType::fp32, shifted.data() + 1, DataType::fp64, wide.data(), 3);
    EXPECT_EQ(wide, (std::vector<double>{1.5, -2.25, 3.0}));
}

TEST(Convert, RowsKeepWhatLiesBetweenThem) {
    constexpr std::int64_t rows = 3, columns = 70000, stride = 70001;  // longer than one piece of a row
    std::vector<float> source(rows * columns);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
    std::vector<double> actual(rows * stride, -7), expected = actual;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) expected[r * stride + c] = source[r * columns + c];
    convert_rows(DataType::fp32, source.data(), rows, columns, DataType::fp64, actual.data(), stride);
    EXPECT_EQ(actual, expected);
}

TEST(Convert, RefusesIntegers) {
    std::int32_t integer = 1;
    float value = 0;
    EXPECT_THROW(convert(DataType::int32, &integer, DataType::fp32, &value, 1), std::invalid_argument);
    EXPECT_THROW(convert_rows(DataType::fp32, &value, 1, 1, DataType::int32, &integer, 1), std::invalid_argument);
}

}  // namespace
}  // namespace kbench
