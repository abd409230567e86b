// What a seed plants is the same everywhere, within its range, and not always the same.
#include "tests/truths/draw.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <stdexcept>

#include "tests/truths/truth.h"

namespace kbench {
namespace {

TEST(Draw, IsDecidedByTheSeedAndTheTruth) {
    constexpr std::array ranges{DrawRange{"iterations", 500, 1500}, DrawRange{"MiB", 1024, 2048, 32}};
    const Drawn one = draw("ffma", 1, ranges);
    EXPECT_EQ(draw("ffma", 1, ranges), one);
    EXPECT_NE(draw("ffma", 2, ranges), one);
    EXPECT_NE(draw("copy", 1, ranges), one);
}

/// The standard defines std::mt19937_64 to the bit. Other numbers would make another matrix of a seed that has one.
TEST(Draw, IsTheSameOnEveryMachine) {
    constexpr std::array ranges{DrawRange{"a", 0, 999'999}, DrawRange{"b", 0, 999'999}};
    const Drawn drawn = draw("ffma", 1, ranges);
    EXPECT_EQ(drawn["a"], 768'227);
    EXPECT_EQ(drawn["b"], 953'759);
}

TEST(Draw, OfEveryTruthStaysInItsRangesAndReachesTheirEnds) {
    for (const Truth& truth : truths())
        for (const DrawRange& range : truth.draws) {
            std::set<std::int64_t> seen;
            for (std::uint64_t seed = 0; seed < 300; ++seed) {
                const std::int64_t value = draw(truth.name, seed, truth.draws)[range.what];
                EXPECT_GE(value, range.low) << truth.name << ": " << range.what;
                EXPECT_LE(value, range.high) << truth.name << ": " << range.what;
                EXPECT_EQ((value - range.low) % range.step, 0) << truth.name << ": " << range.what;
                seen.insert(value);
            }
            EXPECT_GT(seen.size(), 1U) << truth.name << ": " << range.what;
            const auto spread = static_cast<double>(range.high - range.low);
            EXPECT_LE(*seen.begin(), range.low + 0.05 * spread) << truth.name << ": " << range.what;
            EXPECT_GE(*seen.rbegin(), range.high - 0.05 * spread) << truth.name << ": " << range.what;
        }
}

TEST(Draw, KnowsNoNumberWithoutARange) {
    const Drawn drawn = draw("ffma", 1, std::array{DrawRange{"iterations", 1, 2}});
    EXPECT_THROW(drawn["bytes"], std::out_of_range);
}

}  // namespace
}  // namespace kbench
