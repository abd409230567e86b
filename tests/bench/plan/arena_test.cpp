// The arena never lets two tensors that live at once overlap, and stays small.
#include "bench/plan/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace kbench {
namespace {

void expect_no_overlap(const std::vector<Lifetime>& lifetimes, const ArenaLayout& layout) {
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
        EXPECT_EQ(layout.offsets[i] % 256, 0);
        EXPECT_LE(layout.offsets[i] + lifetimes[i].bytes, layout.bytes);
        for (std::size_t j = 0; j < i; ++j) {
            const bool meet = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
            const bool overlap = layout.offsets[i] < layout.offsets[j] + lifetimes[j].bytes &&
                                 layout.offsets[j] < layout.offsets[i] + lifetimes[i].bytes;
            EXPECT_FALSE(meet && overlap) << "tensors " << i << " and " << j;
        }
    }
}

TEST(Arena, ReusesMemoryOfTensorsThatNeverMeet) {
    const std::vector<Lifetime> chain{{1024, 0, 1}, {1024, 1, 2}, {1024, 2, 3}, {1024, 3, 4}};
    const ArenaLayout layout = lay_out_arena(chain, 256);
    EXPECT_EQ(layout.bytes, 2048);
    expect_no_overlap(chain, layout);
}

TEST(Arena, KeepsTensorsApartThatMeetAtOneStep) {
    const std::vector<Lifetime> pair{{100, 0, 3}, {100, 3, 5}};
    const ArenaLayout layout = lay_out_arena(pair, 256);
    EXPECT_EQ(layout.bytes, 512);
    expect_no_overlap(pair, layout);
}

TEST(Arena, NeverOverlapsOnRandomLifetimes) {
    std::mt19937 random(7);
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<Lifetime> lifetimes;
        std::int64_t sum = 0;
        for (int i = 0; i < 40; ++i) {
            const std::size_t first = random() % 30;
            lifetimes.push_back({1 + static_cast<std::int64_t>(random() % 5000), first, first + random() % 8});
            sum += (lifetimes.back().bytes + 255) / 256 * 256;
        }
        const ArenaLayout layout = lay_out_arena(lifetimes, 256);
        expect_no_overlap(lifetimes, layout);
        EXPECT_LT(layout.bytes, sum);
    }
}

TEST(Arena, OfNothingIsEmpty) { EXPECT_EQ(lay_out_arena({}, 256).bytes, 0); }

}  // namespace
}  // namespace kbench
