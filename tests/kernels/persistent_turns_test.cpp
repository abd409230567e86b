// Turns of the persistent LSTM that polls, played on the host: warps of some blocks take theirs in any order that their
// barriers and h allow. Memory is as the last write left it here; what a GPU may reorder is not played.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "kernels/recurrent/persistent/layout.h"

namespace kbench::test {
namespace {

using namespace cuda::persistent;

constexpr int warps = threads / 32, warps_of_group = warpgroup_threads / 32;

/// A named barrier of `size` warps: bar.sync waits until its phase is over, bar.arrive does not.
class Barrier {
  public:
    explicit Barrier(int size) : size_(size) {}
    /// Returns the phase to wait for.
    int arrive(int warp, int turn) {
        EXPECT_TRUE(arrived_.insert(warp).second) << "warp " << warp << " arrives twice in turn " << turn;
        EXPECT_TRUE(turns_.insert(turn).second || turns_.size() == 1);
        EXPECT_EQ(turns_.size(), 1u) << "warps of several turns meet";
        const int phase = phase_;
        if (static_cast<int>(arrived_.size()) == size_) {
            arrived_.clear();
            turns_.clear();
            ++phase_;
        }
        return phase;
    }
    bool is_over(int phase) const { return phase_ > phase; }

  private:
    int size_, phase_ = 0;
    std::set<int> arrived_, turns_;
};

/// Step and tile that a word of h is of; none: missing.
using Word = std::optional<std::pair<int, int>>;

struct Game {
    int blocks, tiles, steps, columns;
    int owners = threads / (columns * units), owner_warps = columns * units / 32;
    /// [slot][tile][block][warp of the owner]
    std::vector<Word> words = std::vector<Word>(static_cast<std::size_t>(polled_slots * tiles * blocks * owner_warps));

    Word& word(int step, int tile, int block, int warp) {
        return words.at(
            static_cast<std::size_t>(((step % polled_slots * tiles + tile) * blocks + block) * owner_warps + warp));
    }
};

struct Block {
    std::vector<Barrier> of_group = std::vector<Barrier>(warpgroups, Barrier(warps_of_group)),
                         of_sums = std::vector<Barrier>(2, Barrier(warps));
    int multiplies[warps][2] = {};                 ///< whether a warp's product reads the buffer of h
    int sums[sum_buffers][warps] = {};             ///< turn + 1 that a warp's sums in the buffer are of
    std::vector<std::vector<int>> unread_by = {};  ///< [turn][warp]: whether it is to read that turn's sums
};

enum class Stage { poll, meet_group, multiply, write, meet_all, cell };

class Warp {
  public:
    Warp(Game& game, Block& block, int index, int warp) : game_(game), block_(block), index_(index), warp_(warp) {}

    bool is_done() const { return turn_ == game_.steps * game_.tiles; }
    /// Goes on by a stage; false where it waits.
    bool advance() {
        const int step = turn_ / game_.tiles, tile = turn_ % game_.tiles;
        const bool is_owner = tile % game_.owners == warp_ / game_.owner_warps;
        switch (stage_) {
            case Stage::poll: return poll(step, tile);
            case Stage::meet_group:
                if (!block_.of_group[group()].is_over(phase_)) return false;
                block_.multiplies[warp_][turn_ % 2] = 1;
                stage_ = Stage::multiply;
                return true;
            case Stage::multiply:
                block_.multiplies[warp_][turn_ % 2] = 0;
                if (game_.tiles > 1) ask(turn_ + 1);
                stage_ = Stage::write;
                return true;
            case Stage::write: {
                if (turn_ >= sum_buffers) {
                    for (const int unread : block_.unread_by[static_cast<std::size_t>(turn_ - sum_buffers)])
                        EXPECT_EQ(unread, 0) << "sums of turn " << turn_ - sum_buffers << " are lost";
                }
                block_.sums[turn_ % sum_buffers][warp_] = turn_ + 1;
                phase_ = block_.of_sums[static_cast<std::size_t>(turn_ % 2)].arrive(warp_, turn_);
                stage_ = is_owner || all_wait(tile, tile + 1 == game_.tiles) ? Stage::meet_all : Stage::cell;
                return true;
            }
            case Stage::meet_all:
                if (!block_.of_sums[static_cast<std::size_t>(turn_ % 2)].is_over(phase_)) return false;
                stage_ = Stage::cell;
                return true;
            default:
                if (is_owner) compute(step, tile);
                ++turn_;
                stage_ = Stage::poll;
                return true;
        }
    }

  private:
    std::size_t group() const { return static_cast<std::size_t>(warp_ / warps_of_group); }
    /// The words that this warp's group reads: of the blocks of its quarter.
    template <class Function>
    void for_quarter(Function function) {
        const int quarter = game_.blocks / warpgroups;
        for (int i = 0; i < quarter * game_.owner_warps; ++i)
            function(static_cast<std::size_t>(i), static_cast<int>(group()) * quarter + i / game_.owner_warps,
                     i % game_.owner_warps);
    }
    void ask(int turn) {
        const int step = turn / game_.tiles, tile = turn % game_.tiles;
        if (step == 0 || step >= game_.steps) return;
        seen_.assign(static_cast<std::size_t>(game_.blocks / warpgroups * game_.owner_warps), Word{});
        for_quarter([&](std::size_t at, int block, int warp) { seen_[at] = game_.word(step - 1, tile, block, warp); });
    }
    bool poll(int step, int tile) {
        if (step > 0) {
            if (seen_.empty()) ask(turn_);
            bool missing_one = false;
            for_quarter([&](std::size_t at, int block, int warp) {
                if (!seen_[at]) seen_[at] = game_.word(step - 1, tile, block, warp);
                if (!seen_[at])
                    missing_one = true;
                else
                    EXPECT_EQ(*seen_[at], std::pair(step - 1, tile)) << "an h of long ago in turn " << turn_;
            });
            if (missing_one) return false;
            seen_.clear();
            for (int other = 0; other < warps_of_group; ++other)
                EXPECT_EQ(block_.multiplies[static_cast<int>(group()) * warps_of_group + other][turn_ % 2], 0)
                    << "h is overwritten that a product reads, turn " << turn_;
        }
        phase_ = block_.of_group[group()].arrive(warp_, turn_);
        stage_ = Stage::meet_group;
        return true;
    }
    void compute(int step, int tile) {
        for (const int turn : block_.sums[turn_ % sum_buffers]) EXPECT_EQ(turn, turn_ + 1) << "sums of another turn";
        block_.unread_by[static_cast<std::size_t>(turn_)][static_cast<std::size_t>(warp_)] = 0;
        const int own = warp_ % game_.owner_warps;
        EXPECT_FALSE(game_.word(step, tile, index_, own)) << "the slot of turn " << turn_ << " is not empty";
        game_.word(step, tile, index_, own) = {step, tile};
        if (step >= 2) game_.word(step - 2, tile, index_, own) = {};
    }

    Game& game_;
    Block& block_;
    int index_, warp_, turn_ = 0, phase_ = 0;
    Stage stage_ = Stage::poll;
    std::vector<Word> seen_ = {};
};

/// A game in an order drawn from `seed`, in which some warps are much slower than others.
void play(Game game, unsigned seed) {
    SCOPED_TRACE(testing::Message() << game.tiles << " tiles of " << game.columns << ", seed " << seed);
    std::mt19937 random(seed);
    std::vector<Block> blocks(static_cast<std::size_t>(game.blocks));
    std::vector<Warp> all;
    std::vector<unsigned> patience;
    for (int b = 0; b < game.blocks; ++b) {
        Block& block = blocks[static_cast<std::size_t>(b)];
        for (int turn = 0; turn < game.steps * game.tiles; ++turn) {
            const int owner = turn % game.tiles % game.owners;
            std::vector<int>& unread = block.unread_by.emplace_back(std::vector<int>(warps));
            for (int warp = 0; warp < warps; ++warp)
                unread[static_cast<std::size_t>(warp)] = warp / game.owner_warps == owner;
        }
        for (int warp = 0; warp < warps; ++warp) {
            all.emplace_back(game, block, b, warp);
            patience.push_back(random() % 4 == 0 ? 40 : 1 + random() % 3);
        }
    }
    for (int idle = 0; idle < 3;) {
        bool moved = false, done = true;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].is_done()) continue;
            done = false;
            if (idle > 0 || random() % patience[i] == 0) moved = all[i].advance() || moved;
        }
        if (done || testing::Test::HasFailure()) return;
        idle = moved ? 0 : idle + 1;
    }
    FAIL() << "all wait for each other";
}

TEST(PersistentLstmTurns, LoseNothingInWhateverOrderWarpsTakeThem) {
    for (const int columns : {8, 16, 32})
        for (const int tiles : {1, 2, 3, 4, 5, 8})
            for (unsigned seed = 0; seed < 6; ++seed) play({4, tiles, 40, columns}, seed);
}

}  // namespace
}  // namespace kbench::test
