// The passes over stored 16-bit elements against single elements: every number, ties, and every length of the rest.
#include "cpu/native/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace kbench::cpu {
namespace {

template <class T>
std::vector<T> every_number() {
    std::vector<T> all(0x10000);
    for (std::uint32_t bits = 0; bits < all.size(); ++bits) all[bits] = {static_cast<std::uint16_t>(bits)};
    return all;
}

template <class T>
T stored(float x) {
    T to;
    store(to, x);
    return to;
}

template <class T>
constexpr float smallest_normal = std::is_same_v<T, Float16> ? 0x1p-14f : 0x1p-126f;

/// `computed` is what storing `exact` gives; in bf16 a subnormal result may be a zero of its sign.
template <class T>
bool same(T computed, float exact) {
    if (std::isnan(exact)) return std::isnan(load(computed));
    const bool flushed = std::is_same_v<T, BFloat16> && std::abs(exact) < smallest_normal<T> && load(computed) == 0 &&
                         std::signbit(load(computed)) == std::signbit(exact);
    return flushed || computed.bits == stored<T>(exact).bits;
}

template <class T>
class Half : public testing::Test {};
using Types = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(Half, Types);

TYPED_TEST(Half, EveryNumberIsScaledAsASingleOne) {
    const std::vector<TypeParam> all = every_number<TypeParam>();
    for (const float factor : {1.0f, 1.0f / 3, 0.0f, -1234.5f, 3e38f})
        for (const float weight : {1.0f, 0.7f, 65280.0f}) {
            const std::vector<TypeParam> weights(all.size(), stored<TypeParam>(weight));
            std::vector<TypeParam> out(all.size());
            scale(std::ssize(all), all.data(), factor, weights.data(), out.data());
            for (std::size_t i = 0; i < all.size(); ++i) {
                const float exact = load(all[i]) * factor * load(weights[i]);
                ASSERT_TRUE(same(out[i], exact))
                    << load(all[i]) << " * " << factor << " * " << load(weights[i]) << " became " << load(out[i]);
            }
        }
}

TYPED_TEST(Half, ResultsBetweenTwoNumbersRoundToTheNearestAndTiesToEven) {
    // x is 1 or -1, weight the number 1; the factor is what is rounded.
    const TypeParam ones[] = {stored<TypeParam>(1), stored<TypeParam>(-1)};
    const TypeParam weights[] = {ones[0], ones[0]};
    const std::uint32_t largest = std::is_same_v<TypeParam, Float16> ? 0x7bff : 0x7f7f;
    for (std::uint32_t bits = 0; bits < largest; ++bits) {
        const float low = load(TypeParam{static_cast<std::uint16_t>(bits)});
        const float high = load(TypeParam{static_cast<std::uint16_t>(bits + 1)});
        const float middle = low + (high - low) / 2;
        for (const float x : {std::nextafter(middle, low), middle, std::nextafter(middle, high)}) {
            TypeParam out[2];
            scale(2, ones, x, weights, out);
            ASSERT_TRUE(same(out[0], x)) << x;
            ASSERT_TRUE(same(out[1], -x)) << -x;
        }
    }
}

TYPED_TEST(Half, ARestOfAnyLengthIsScaledAndNothingBehindIt) {
    for (std::int64_t count = 0; count <= 300; ++count) {
        const std::vector<TypeParam> x(320, stored<TypeParam>(2)), weight(320, stored<TypeParam>(3));
        std::vector<TypeParam> out(320, stored<TypeParam>(-1));
        scale(count, x.data(), 0.5f, weight.data(), out.data());
        for (std::int64_t i = 0; i < 320; ++i)
            ASSERT_EQ(load(out[static_cast<std::size_t>(i)]), i < count ? 3 : -1) << count << ", " << i;
    }
}

TYPED_TEST(Half, EachElementOfARowOfAnyLengthIsInTheSumOnceAndNothingBehindIt) {
    for (std::int64_t count = 0; count <= 600; ++count) {
        std::vector<TypeParam> x(640, stored<TypeParam>(100));
        float expected = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            x[static_cast<std::size_t>(i)] = stored<TypeParam>(static_cast<float>(i % 7 - 3));
            expected += static_cast<float>((i % 7 - 3) * (i % 7 - 3));
        }
        ASSERT_EQ(sum_of_squares(count, x.data()), expected) << count;  // integers below 2^24: any order is exact
    }
}

TYPED_TEST(Half, ASumOfSquaresHoldsTheNumbersOneAtATime) {
    const std::vector<TypeParam> all = every_number<TypeParam>();
    for (const TypeParam& x : all) {
        const float exact = load(x) * load(x), computed = sum_of_squares(1, &x);
        if (std::isnan(exact)) {
            ASSERT_TRUE(std::isnan(computed));
        } else if (std::is_same_v<TypeParam, Float16> || std::abs(exact) >= smallest_normal<TypeParam>) {
            ASSERT_EQ(computed, exact) << load(x);
        }
    }
}

TYPED_TEST(Half, AnInfinityOrANaNAnywhereReachesTheSum) {
    for (const float special : {INFINITY, NAN})
        for (std::size_t place = 0; place < 300; ++place) {
            std::vector<TypeParam> x(300, stored<TypeParam>(1));
            x[place] = stored<TypeParam>(special);
            const float sum = sum_of_squares(300, x.data());
            ASSERT_TRUE(std::isnan(special) ? std::isnan(sum) : std::isinf(sum)) << place;
        }
}

}  // namespace
}  // namespace kbench::cpu
