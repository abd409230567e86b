// The chunk conversions of fp16 against those of single elements, for every fp16 number and every length of the rest.
#include "cpu/native/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace kbench::cpu {
namespace {

std::vector<Float16> every_half() {
    std::vector<Float16> all(0x10000);
    for (std::uint32_t bits = 0; bits < all.size(); ++bits) all[bits] = {static_cast<std::uint16_t>(bits)};
    return all;
}

void expect_same(Float16 computed, Float16 expected, float from) {
    if (std::isnan(from))
        EXPECT_TRUE(std::isnan(load(computed)));
    else
        EXPECT_EQ(computed.bits, expected.bits) << from;
}

TEST(Half, EveryNumberBecomesItsFloatAndComesBack) {
    const std::vector<Float16> all = every_half();
    std::vector<float> floats(all.size());
    std::vector<Float16> back(all.size());
    halves_to_floats(all.data(), floats.data(), std::ssize(all));
    floats_to_halves(floats.data(), back.data(), std::ssize(all));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const float expected = load(all[i]);
        if (!std::isnan(expected)) {
            ASSERT_EQ(std::bit_cast<std::uint32_t>(floats[i]), std::bit_cast<std::uint32_t>(expected)) << i;
        }
        expect_same(back[i], all[i], expected);
    }
}

TEST(Half, FloatsBetweenTwoNumbersRoundToTheNearestAndTiesToEven) {
    std::vector<float> between;
    for (std::uint32_t bits = 0; bits < 0x7c00; ++bits)
        for (const float sign : {1.0f, -1.0f}) {
            const float low = load(Float16{static_cast<std::uint16_t>(bits)});
            const float high = bits == 0x7bff ? 65536.0f : load(Float16{static_cast<std::uint16_t>(bits + 1)});
            const float middle = (low + high) / 2;
            for (const float x : {std::nextafter(middle, low), middle, std::nextafter(middle, high)})
                between.push_back(sign * x);
        }
    std::vector<Float16> halves(between.size());
    floats_to_halves(between.data(), halves.data(), std::ssize(between));
    for (std::size_t i = 0; i < between.size(); ++i) {
        Float16 expected;
        store(expected, between[i]);
        expect_same(halves[i], expected, between[i]);
    }
}

TEST(Half, ARestOfAnyLengthIsConvertedAndNothingBehindIt) {
    for (std::int64_t count = 0; count <= 40; ++count) {
        std::vector<float> floats(48, -1);
        std::vector<Float16> halves(48, Float16{0x3c00}), back(48, Float16{0xffff});
        halves_to_floats(halves.data(), floats.data(), count);
        floats_to_halves(floats.data(), back.data(), count);
        for (std::int64_t i = 0; i < 48; ++i) {
            EXPECT_EQ(floats[static_cast<std::size_t>(i)], i < count ? 1 : -1) << count;
            EXPECT_EQ(back[static_cast<std::size_t>(i)].bits, i < count ? 0x3c00 : 0xffff) << count;
        }
    }
}

}  // namespace
}  // namespace kbench::cpu
