// Differences between forwards are seen to the bit, and padding is nobody's business.
#include "bench/logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace kbench {
namespace {

constexpr std::int64_t rows = 5, columns = 7, stride = 8;

Logits make(void (*change)(float* values) = nullptr) {
    std::vector<float> values(static_cast<std::size_t>(rows * stride));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>(i);
    if (change != nullptr) change(values.data());
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return {Operand{"out", OperandUse::output, DataType::fp32, rows, columns, stride, rows}, std::move(bytes)};
}

TEST(Logits, EqualForwardsDoNotDiffer) { EXPECT_EQ(make().difference(make()), ""); }

TEST(Logits, NamesHowManyDifferByHowMuchAndWhereFirst) {
    const Logits other = make([](float* values) {
        values[2 * stride + 3] += 0.5f;
        values[4 * stride + 6] -= 2.0f;
    });
    EXPECT_EQ(make().difference(other),
              "2 of 35 logits differ between forwards of the same input, by up to 2, first at row 2");
}

TEST(Logits, PaddingMayDiffer) {
    EXPECT_EQ(make().difference(make([](float* values) { values[columns] = 99; })), "");
}

TEST(Logits, CountsWhatIsNotFinite) {
    EXPECT_EQ(make().count_not_finite(), 0);
    EXPECT_EQ(make([](float* values) {
                  values[0] = std::numeric_limits<float>::infinity();
                  values[stride] = std::numeric_limits<float>::quiet_NaN();
                  values[columns] = std::numeric_limits<float>::quiet_NaN();  // padding
              }).count_not_finite(),
              2);
}

}  // namespace
}  // namespace kbench
