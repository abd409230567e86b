// The generator: its published test vectors, its distribution, and independence of everything but seed, name and index.
#include "bench/plan/data/random.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "bench/plan/data/convert.h"

namespace kbench {
namespace {

std::vector<float> normal(std::uint64_t seed, std::string_view stream, std::int64_t count, double deviation = 1.0) {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    fill_normal(seed, stream, deviation, DataType::fp32, numbers.data(), count);
    return numbers;
}

Tensor matrix(std::int64_t rows, std::int64_t columns) {
    return {.name = "h.0.mlp.c_fc.weight",
            .role = Role::weights,
            .shape = {rows, columns},
            .contents = Contents::normal(0.02)};
}

// Known answers from the Random123 distribution of Salmon et al., kat_vectors.
TEST(Philox, GivesThePublishedAnswers) {
    using Words = std::array<std::uint32_t, 4>;
    EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(FillNormal, HasTheMomentsOfANormalDistribution) {
    const std::vector<float> numbers = normal(1, "moments", 4'000'000);
    double sum[5] = {};
    for (const double x : numbers)
        for (int power = 1; power <= 4; ++power) sum[power] += std::pow(x, power);
    const double n = static_cast<double>(numbers.size());
    // Five standard errors each: sqrt(1/n), sqrt(2/n), sqrt(15/n), sqrt(96/n).
    EXPECT_NEAR(sum[1] / n, 0, 5 * std::sqrt(1 / n));
    EXPECT_NEAR(sum[2] / n, 1, 5 * std::sqrt(2 / n));
    EXPECT_NEAR(sum[3] / n, 0, 5 * std::sqrt(15 / n));
    EXPECT_NEAR(sum[4] / n, 3, 5 * std::sqrt(96 / n));
}

TEST(FillNormal, FollowsTheNormalDistributionFunction) {
    std::vector<float> numbers = normal(2, "kolmogorov", 1'000'000);
    std::sort(numbers.begin(), numbers.end());
    double distance = 0;
    const double n = static_cast<double>(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const double expected = 0.5 * std::erfc(-numbers[i] * std::sqrt(0.5));
        distance = std::max({distance, std::fabs(expected - i / n), std::fabs(expected - (i + 1) / n)});
    }
    EXPECT_LT(distance, 1.95 / std::sqrt(n));  // Kolmogorov and Smirnov, level 0.001
}

TEST(FillNormal, EqualsBoxAndMullerInDoublePrecision) {
    // Words 0 and 1 of a counter give numbers i and i + 256 of a tile; the name's hash makes the counter's upper half.
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const unsigned char letter : std::string_view("oracle")) hash = (hash ^ letter) * 0x100000001b3u;
    const std::vector<float> numbers = normal(0x123456789abcdef0u, "oracle", 4096);
    for (std::uint32_t i = 0; i < 256; ++i) {
        const auto words =
            philox4x32_10({256 + i, 0, static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)},
                          {0x9abcdef0u, 0x12345678u});
        const double radius = std::sqrt(-2 * std::log(static_cast<double>(words[0] >> 1 | 1u) * 0x1p-31));
        const double angle =
            std::acos(-1.0) / 2 * ((words[1] >> 30) + (static_cast<double>(words[1] & 0x3fffffffu) * 0x1p-30 - 0.5));
        EXPECT_NEAR(numbers[1024 + i], radius * std::cos(angle), 3e-6);
        EXPECT_NEAR(numbers[1024 + 256 + i], radius * std::sin(angle), 3e-6);
    }
}

TEST(FillNormal, DependsOnSeedAndNameAndNotOnCount) {
    const std::vector<float> numbers = normal(1, "a", 5000);
    const std::vector<float> fewer = normal(1, "a", 3001);
    EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), numbers.begin()));
    EXPECT_NE(numbers, normal(2, "a", 5000));
    EXPECT_NE(numbers, normal(1ull << 32 | 1, "a", 5000));
    EXPECT_NE(numbers, normal(1, "b", 5000));
}

TEST(FillNormal, DoesNotDependOnTheNumberOfThreads) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    const std::vector<float> one = normal(1, "threads", 100'000);
    omp_set_num_threads(5);
    const std::vector<float> five = normal(1, "threads", 100'000);
    omp_set_num_threads(before);
    EXPECT_EQ(one, five);
}

// The bits of the scalar loop (-O0, no vectors): every vector width and every machine must give them again.
TEST(FillNormal, GivesTheSameBitsOnEveryMachine) {
    const std::vector<float> numbers = normal(42, "bits", 1 << 20);
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const float number : numbers) hash = (hash ^ std::bit_cast<std::uint32_t>(number)) * 0x100000001b3u;
    EXPECT_EQ(hash, 0x569babe5735593ecu);
}

TEST(FillNormal, EveryPrecisionRoundsTheSameNumbers) {
    constexpr std::int64_t count = 10'000;
    const std::vector<float> single = normal(3, "precision", count, 0.02);
    for (const DataType type : {DataType::fp16, DataType::bf16}) {
        std::vector<std::uint16_t> actual(count), expected(count);
        fill_normal(3, "precision", 0.02, type, actual.data(), count);
        convert(DataType::fp32, single.data(), type, expected.data(), count);
        EXPECT_EQ(actual, expected) << name(type);
    }
    std::vector<double> wide(count);
    fill_normal(3, "precision", 0.02, DataType::fp64, wide.data(), count);
    int beyond_fp32 = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(static_cast<float>(wide[i]), single[i]);
        beyond_fp32 += wide[i] != single[i];
    }
    // Otherwise a kernel that computes in fp32 from fp64 operands would lose nothing by rounding them.
    EXPECT_GT(beyond_fp32, count * 99 / 100);
}

TEST(FillRandom, RowsAreTheSameWhateverTheirStride) {
    constexpr std::int64_t rows = 7, columns = 777, stride = 800;
    const Tensor tensor = matrix(rows, columns);
    std::vector<float> packed(rows * columns), padded(rows * stride, -7.0f);
    fill_random(tensor, 5, DataType::fp32, packed.data(), columns);
    fill_random(tensor, 5, DataType::fp32, padded.data(), stride);
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < stride; ++c)
            ASSERT_EQ(padded[r * stride + c], c < columns ? packed[r * columns + c] : -7.0f) << r << ' ' << c;
}

TEST(FillRandom, FollowsTheTensorsContents) {
    Tensor tensor = matrix(1000, 100);
    std::vector<float> values(100'000);
    fill_random(tensor, 5, DataType::fp32, values.data(), 100);
    double squares = 0;
    for (const double value : values) squares += value * value;
    EXPECT_NEAR(std::sqrt(squares / 1e5), 0.02, 0.0003);

    std::vector<float> moved(100'000);
    tensor.contents = Contents::normal(0.02, 3);
    fill_random(tensor, 5, DataType::fp32, moved.data(), 100);
    for (std::size_t i = 0; i < moved.size(); ++i) ASSERT_EQ(moved[i], values[i] + 3.0f);

    tensor.contents = {Contents::Kind::ones};
    std::vector<std::uint16_t> halves(100'000, 7);
    fill_random(tensor, 5, DataType::fp16, halves.data(), 100);
    EXPECT_EQ(halves, std::vector<std::uint16_t>(100'000, 0x3c00));
    tensor.contents = {Contents::Kind::zeros};
    fill_random(tensor, 5, DataType::fp16, halves.data(), 100);
    EXPECT_EQ(halves, std::vector<std::uint16_t>(100'000, 0));

    Tensor lengths = matrix(3, 2);
    lengths.contents = Contents::of({117, 59});
    std::vector<std::int32_t> numbers(9, -1);
    fill_random(lengths, 5, DataType::int32, numbers.data(), 3);
    EXPECT_EQ(numbers, (std::vector<std::int32_t>{117, 59, -1, 117, 59, -1, 117, 59, -1}));
}

TEST(FillContents, OfTokensCoverTheVocabularyAndNothingElse) {
    constexpr std::int64_t vocab = 100;
    std::vector<std::int32_t> tokens(100'000);
    const auto fill = [&](std::uint64_t seed, std::vector<std::int32_t>& numbers) {
        const auto count = static_cast<std::int64_t>(numbers.size());
        fill_contents(Contents::below(vocab), seed, "tokens", DataType::int32, 1, count, numbers.data(), count);
    };
    fill(1, tokens);
    std::vector<int> seen(vocab);
    for (const std::int32_t token : tokens) {
        ASSERT_GE(token, 0);
        ASSERT_LT(token, vocab);
        ++seen[token];
    }
    for (const int count : seen) EXPECT_NEAR(count, 1000, 160);  // five standard deviations
    std::vector<std::int32_t> again(tokens.size()), of_another_seed(tokens.size());
    fill(1, again);
    fill(2, of_another_seed);
    EXPECT_EQ(again, tokens);
    EXPECT_NE(of_another_seed, tokens);
}

}  // namespace
}  // namespace kbench
