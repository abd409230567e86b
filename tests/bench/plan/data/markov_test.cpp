// The synthetic source: its entropy is that of what it draws, and it is the same everywhere.
#include "bench/plan/data/markov.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace kbench {
namespace {

std::vector<std::int32_t> drawn(std::uint64_t seed, std::size_t count) {
    MarkovSource source(seed);
    std::vector<std::int32_t> tokens(count);
    source.fill(tokens);
    return tokens;
}

TEST(MarkovSource, GoesOnBehindSkippedTokensAsBehindDrawnOnes) {
    const std::vector<std::int32_t> all = drawn(3, 100'100);
    for (const std::size_t skipped : {0U, 1U, 4096U, 4097U, 9000U, 100'000U}) {
        MarkovSource source(3);
        source.skip(skipped);
        std::array<std::int32_t, 100> next{};
        source.fill(next);
        EXPECT_TRUE(std::equal(next.begin(), next.end(), all.begin() + static_cast<std::ptrdiff_t>(skipped)))
            << skipped;
    }
}

TEST(MarkovSource, SkipsAsManyTokensAsAFileMaySay) {
    MarkovSource at_once(3), in_two(3);
    at_once.skip((std::uint64_t{1} << 53) + 5);
    in_two.skip(std::uint64_t{1} << 53);
    in_two.skip(5);
    std::array<std::int32_t, 100> one{}, other{};
    at_once.fill(one);
    in_two.fill(other);
    EXPECT_EQ(one, other);
}

TEST(MarkovSource, ProbabilitiesOfEachTokenSumToOne) {
    const MarkovSource source(7);
    for (int from = 0; from < MarkovSource::states; ++from) {
        double sum = 0;
        for (int to = 0; to < MarkovSource::states; ++to) {
            EXPECT_GT(source.probability(from, to), 0);
            sum += source.probability(from, to);
        }
        EXPECT_NEAR(sum, 1, 1e-12);
    }
}

/// The entropy of the pairs that were drawn, which knows no stationary distribution. With a million it is too
/// small by about (64 * 63) / (2 * 1e6) = 0.002 nats (Miller, 1955) and scatters by 0.0015.
TEST(MarkovSource, ItsEntropyIsThatOfWhatItDraws) {
    constexpr std::size_t count = 1'000'000;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const std::vector<std::int32_t> tokens = drawn(seed, count);
        std::array<std::array<double, MarkovSource::states>, MarkovSource::states> pairs{};
        for (std::size_t i = 1; i < count; ++i)
            ++pairs[static_cast<std::size_t>(tokens[i - 1])][static_cast<std::size_t>(tokens[i])];
        double entropy = 0;
        for (const auto& row : pairs) {
            const double all = std::accumulate(row.begin(), row.end(), 0.0);
            for (const double pair : row)
                if (pair > 0) entropy -= pair / count * std::log(pair / all);
        }
        EXPECT_NEAR(entropy, MarkovSource(seed).entropy(), 0.01) << seed;
        EXPECT_LT(MarkovSource(seed).entropy(), 2.5) << "far below ln 64 = 4.16: there is much to learn";
    }
}

TEST(MarkovSource, GoesOnWhereTheLastCallEnded) {
    MarkovSource source(5);
    std::vector<std::int32_t> parts(300);
    source.fill(std::span(parts).first(100));
    source.fill(std::span(parts).subspan(100));
    EXPECT_EQ(parts, drawn(5, 300));
    EXPECT_NE(parts, drawn(6, 300));
}

}  // namespace
}  // namespace kbench
