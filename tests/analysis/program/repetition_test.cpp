// Repetitions: against a search that tries everything, and planted ones of the kinds that programs have.
#include "analysis/program/repetition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

namespace kbench {
namespace {

using Sequence = std::vector<std::uint32_t>;

/// Every begin and period, tried.
std::vector<Repetition> tried(const Sequence& sequence) {
    std::vector<Repetition> found;
    const auto is_known = [&](const Repetition& r) {  // by a smaller period
        return std::ranges::any_of(found, [&](const Repetition& f) { return f.begin <= r.begin && f.end >= r.end; });
    };
    for (std::size_t period = 1; 2 * period <= sequence.size(); ++period)
        for (std::size_t begin = 0; begin + 2 * period <= sequence.size(); ++begin) {
            if (begin > 0 && sequence[begin - 1] == sequence[begin - 1 + period]) continue;
            std::size_t end = begin + period;
            while (end < sequence.size() && sequence[end] == sequence[end - period]) ++end;
            const Repetition repetition{begin, end, period};
            if (repetition.count() >= 2 && !is_known(repetition)) found.push_back(repetition);
        }
    std::ranges::sort(found, {}, [](const Repetition& r) { return std::tuple(r.begin, r.period, r.end); });
    return found;
}

Sequence of(std::string_view letters) { return {letters.begin(), letters.end()}; }

void append(Sequence& all, const Sequence& more, int times = 1) {
    for (int i = 0; i < times; ++i) all.insert(all.end(), more.begin(), more.end());
}

/// An embedding, `layers` equal layers of 17 kernels, and a head of `head` kernels.
Sequence forward(int layers, std::uint32_t head = 3) {
    Sequence all{1000}, layer;
    for (std::uint32_t i = 0; i < 17; ++i) layer.push_back(i);
    append(all, layer, layers);
    for (std::uint32_t i = 0; i < head; ++i) all.push_back(2000 + i);
    return all;
}

TEST(AllRepetitions, AreThoseThatTryingEverythingFinds) {
    std::mt19937 random(1);
    for (int round = 0; round < 400; ++round) {
        Sequence sequence(1 + random() % 60);
        const std::uint32_t symbols = 1 + random() % 3;
        for (std::uint32_t& symbol : sequence) symbol = random() % symbols;
        EXPECT_EQ(all_repetitions(sequence), tried(sequence)) << testing::PrintToString(sequence);
    }
    EXPECT_TRUE(all_repetitions({}).empty());
}

TEST(FindRepetition, TakesWholeForwardsAndNotTheirLayers) {
    for (const int forwards : {2, 3, 10}) {
        Sequence sequence{9001, 9002, 9003};
        append(sequence, forward(36), forwards);
        append(sequence, {9004, 9005});
        const Repetition expected{3, 3 + forward(36).size() * static_cast<std::size_t>(forwards), forward(36).size()};
        EXPECT_EQ(find_repetition(sequence), expected) << forwards;
    }
}

TEST(FindRepetition, TakesTheSmallestPeriodOfWhatCoversAsMuch) {
    EXPECT_EQ(find_repetition(of("abababab")), (Repetition{0, 8, 2}));
    EXPECT_EQ(find_repetition(of("aaaaaaaa")), (Repetition{0, 8, 1}));
}

TEST(FindRepetition, StopsAtARareExtra) {
    Sequence iteration(50);
    for (std::uint32_t i = 0; i < 50; ++i) iteration[i] = i % 40;
    for (const int stretches : {2, 5}) {
        Sequence sequence{777};
        for (int i = 0; i < stretches; ++i) {
            append(sequence, iteration, 10);
            sequence.push_back(999);  // every tenth time
        }
        append(sequence, iteration, 4);
        const std::optional<Repetition> found = find_repetition(sequence);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->period, 50u) << stretches;
        EXPECT_EQ(found->count(), 10u) << stretches;
        EXPECT_EQ((found->begin - 1) % 501, 0u) << stretches;
    }
}

TEST(FindRepetition, TakesAnIterationWhoseRestIsShortYetNoExtra) {
    // Odd repeats that share an element: xyxyxyx, twice. Its xy is no iteration with an extra of none.
    Sequence sequence;
    append(sequence, of("xyxyxyx"), 6);
    EXPECT_EQ(find_repetition(sequence)->period, 7u);
    // Layers of 17 with 2 elements around them.
    sequence.clear();
    append(sequence, forward(36, 1), 4);
    EXPECT_EQ(find_repetition(sequence)->period, forward(36, 1).size());
}

TEST(FindRepetition, FindsNothingWhereNothingRepeats) {
    Sequence sequence(1000);
    for (std::uint32_t i = 0; i < 1000; ++i) sequence[i] = i;
    EXPECT_EQ(find_repetition(sequence), std::nullopt);
    EXPECT_EQ(find_repetition({}), std::nullopt);
    EXPECT_EQ(find_repetition(of("a")), std::nullopt);
}

TEST(FindRepetition, TakesSecondsForAMillion) {
    Sequence sequence;
    while (sequence.size() < 1'000'000) append(sequence, forward(36));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(find_repetition(sequence)->period, forward(36).size());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(seconds.count(), 60) << "a search that grows with the square would take an hour";
    RecordProperty("seconds", std::to_string(seconds.count()));
}

}  // namespace
}  // namespace kbench
