// The GEMM ladder's index arithmetic, which needs no device: every tile once, no bank conflicts, no stage written while
// it is read.
#include "kernels/gemm/ladder/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace kbench::cuda::ladder {
namespace {

TEST(TileOfBlock, VisitsEachTileOnce) {
    for (const int strip : {1, 3, 8, 16})
        for (const auto [rows, columns] : {std::array{1, 1}, {1, 40}, {40, 1}, {8, 15}, {17, 5}, {64, 32}}) {
            std::vector<int> visits(rows * columns, 0);
            for (int block = 0; block < rows * columns; ++block) {
                const TilePosition tile = tile_of_block(block, rows, columns, strip);
                ASSERT_TRUE(tile.row >= 0 && tile.row < rows && tile.column >= 0 && tile.column < columns)
                    << "block " << block << " of " << rows << " x " << columns << ", strip " << strip;
                ++visits[tile.row * columns + tile.column];
            }
            EXPECT_EQ(std::ranges::count(visits, 1), rows * columns) << rows << " x " << columns << ", strip " << strip;
        }
}

/// What the blocks of one wave read is about the rows and columns that they span.
TEST(TileOfBlock, BlocksOfAWaveSpanAboutASquare) {
    constexpr int wave = 128;
    const auto spanned = [](int strip) {
        std::set<int> rows, columns;
        for (int block = 0; block < wave; ++block) {
            const TilePosition tile = tile_of_block(block, 64, 64, strip);
            rows.insert(tile.row);
            columns.insert(tile.column);
        }
        return static_cast<int>(rows.size() + columns.size());
    };
    EXPECT_EQ(spanned(1), 2 + 64);
    EXPECT_EQ(spanned(16), 16 + 8);
}

/// Groups of banks, 16 bytes wide, on which the 16-byte reads (row, column) of 8 lanes fall.
template <class Swizzle, int columns, int vector, class Place>
int bank_groups(Place place) {
    std::set<unsigned> groups;
    for (int lane = 0; lane < 8; ++lane) {
        const auto [row, column] = place(lane);
        groups.insert(swizzled<Swizzle, columns, vector>(row, column) / vector % 8);
    }
    return static_cast<int>(groups.size());
}

/// A row of 128 bytes or more, in chunks: a permutation in each row, so that no element overwrites another.
template <class Swizzle>
void expect_permutation() {
    for (unsigned row = 0; row < 128; ++row) {
        std::set<unsigned> chunks;
        for (unsigned chunk = 0; chunk < 32; ++chunk) chunks.insert(Swizzle::chunk(row, chunk));
        EXPECT_EQ(chunks.size(), 32u) << "row " << row;
        EXPECT_EQ(*chunks.rbegin(), 31u) << "row " << row;
    }
}

TEST(Swizzle, PermutesTheChunksOfEachRow) {
    expect_permutation<Swizzle<8>>();
    expect_permutation<Swizzle<8, 2>>();
    expect_permutation<Swizzle<4>>();
    expect_permutation<Swizzle<4, 2>>();
    expect_permutation<Swizzle<2>>();
    expect_permutation<Swizzle<2, 2>>();
    expect_permutation<Swizzle<4, 4>>();
    expect_permutation<Swizzle<2, 8>>();
}

TEST(Swizzle, LdmatrixMeetsEveryGroupOfBanks) {
    for (int row = 0; row < 128; row += 8)
        for (int column = 0; column < 64; column += 8) {
            EXPECT_EQ((bank_groups<Swizzle<8>, 64, 8>([&](int i) { return std::pair(row + i, column); })), 8);
            EXPECT_EQ((bank_groups<Swizzle<8>, 256, 8>([&](int i) { return std::pair(row + i, column); })), 8);
        }
    // tf32, w transposed: 8 rows 2 apart.
    for (int row = 0; row < 128; row += 16)
        for (int column = 0; column < 32; column += 4)
            for (int odd = 0; odd < 2; ++odd)
                EXPECT_EQ(
                    (bank_groups<Swizzle<8, 2>, 32, 4>([&](int i) { return std::pair(row + 2 * i + odd, column); })),
                    8);
}

TEST(Swizzle, ReadsOfTf32And64BitsMeetEveryGroupOfBanks) {
    for (int quarter = 0; quarter < 4; ++quarter) {
        // Lane 4 g + t reads 16 bytes; lanes of a quarter of a warp at a time.
        const auto g = [&](int i) { return (quarter * 8 + i) / 4; };
        const auto t = [](int i) { return i % 4; };
        for (int half = 0; half < 2; ++half) {
            EXPECT_EQ((bank_groups<Swizzle<2>, 16, 2>([&](int i) { return std::pair(half * 8 + g(i), 2 * t(i)); })), 8)
                << "fp64 x";
            EXPECT_EQ((bank_groups<Swizzle<4, 2>, 128, 2>([&](int i) { return std::pair(2 * t(i) + half, 2 * g(i)); })),
                      8)
                << "fp64 w";
            EXPECT_EQ((bank_groups<Swizzle<2, 2>, 16, 2>([&](int i) { return std::pair(2 * g(i) + half, 2 * t(i)); })),
                      8)
                << "fp64 w transposed";
        }
    }
    // tf32 w: lanes read 8 bytes, half a warp at a time; its 16 lanes are 8 pairs of one chunk each.
    for (int part = 0; part < 2; ++part)
        for (int half = 0; half < 2; ++half)
            EXPECT_EQ((bank_groups<Swizzle<4>, 256, 4>([&](int i) {
                          const int t = i % 4, g = part * 4 + i / 4 * 2;
                          return std::pair(half * 4 + t, 2 * g);
                      })),
                      8);
}

/// Rung 3 writes x's vectors, `width` elements along k of neighbouring rows, transposed and element by element.
template <int element_bytes>
int banks_of_transposed_write() {
    constexpr int width = 16 / element_bytes, depth = 16, vectors = depth / width;
    constexpr int lanes = element_bytes == 8 ? 16 : 32;  // in one access
    std::set<unsigned> banks;
    for (int lane = 0; lane < lanes; ++lane)
        for (int byte = 0; byte < element_bytes; byte += 4)
            banks.insert(
                (swizzled<Swizzle<vectors, width>, 128, width>(lane % vectors * width, lane / vectors) * element_bytes +
                 byte) /
                4 % 32);
    return static_cast<int>(banks.size());
}

TEST(Swizzle, TransposedWritesOfRungThreeDoNotConflict) {
    EXPECT_EQ(banks_of_transposed_write<8>(), 32);
    EXPECT_EQ(banks_of_transposed_write<4>(), 32);
    EXPECT_EQ(banks_of_transposed_write<2>(), 16);  // two lanes a bank, in the same word
}

/// The loop of rungs 4 and 5 on a ring: what the slowest warp may still read is not what the fastest may write, and
/// what is read has arrived.
template <int stages>
void expect_ring_is_safe(int tiles) {
    using R = Ring<stages>;
    std::array<int, stages> holds;
    holds.fill(-1);
    int copied = 0, copy_stage = 0, groups = 0;
    constexpr int none = -2;
    const auto copy_next = [&](int still_read) {
        if (copied < tiles) {
            EXPECT_NE(holds[copy_stage], still_read) << "a tile that is being read";
            holds[copy_stage] = copied;
        }
        ++groups;
        ++copied;
        copy_stage = R::next(copy_stage);
    };
    for (int i = 0; i < R::ahead; ++i) copy_next(none);
    int stage = 0;
    EXPECT_GE(groups - R::may_be_pending, 1) << "the first tile has arrived";
    for (int i = 0; i < tiles; ++i) {
        EXPECT_EQ(holds[stage], i) << stages << " stages, " << tiles << " tiles";
        copy_next(i);
        const int arrived = groups - R::may_be_pending;  // tiles waited for before the barrier
        stage = R::next(stage);
        EXPECT_GE(arrived, i + 2) << "tile " << i + 1 << " is read next";
    }
}

TEST(Ring, HoldsEachTileWhenItIsReadAndNoLonger) {
    for (const int tiles : {1, 2, 3, 4, 5, 16, 127}) {
        expect_ring_is_safe<2>(tiles);
        expect_ring_is_safe<3>(tiles);
        expect_ring_is_safe<4>(tiles);
        expect_ring_is_safe<5>(tiles);
    }
}

/// Waiting for one group less would read a tile that is still on its way.
TEST(Ring, LeavesNoMorePendingThanItMay) {
    EXPECT_EQ(Ring<2>::may_be_pending, 0);
    EXPECT_EQ(Ring<3>::may_be_pending, 1);
    EXPECT_EQ(Ring<4>::may_be_pending, 2);
}

}  // namespace
}  // namespace kbench::cuda::ladder
