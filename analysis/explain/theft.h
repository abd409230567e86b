// Time against bandwidth: what taking DRAM's or L2's bandwidth away did to every step, as a causal test of whether it
// binds them. Pure arithmetic on the recorded times of a point; docs/method.md has what it cannot tell.
//
//     const BandwidthElasticity theft = bandwidth_elasticity(facts);
//     if (const TheftGroup* step = theft.of_step(3)) step->dram.finding == BandwidthFinding::binds;
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/point_facts.h"

namespace kbench {

/// So many turns have a median with an interval of 95 %. A turn is two runs in a row: beside a thief that takes, and
/// beside one that only computes.
inline constexpr std::size_t turns_for_interval = 6;

/// What the largest share that was taken away says.
enum class BandwidthFinding {
    binds,         ///< time grows as bandwidth is taken away, nearly in proportion
    binds_partly,  ///< it grows for certain, and whether in proportion is not certain
    does_not_bind,
    cannot_tell,  ///< also where that bandwidth was not taken away
};

/// What one share did.
struct TheftEffect {
    double share = 0;  ///< what the thief took of the level's roof
    Interval ratio;    ///< time over that with a thief that only computes, as recorded; the median over turns
};

/// Steps against the bandwidth of one level.
struct LevelElasticity {
    Level level = Level::dram;
    std::vector<TheftEffect> effects = {};  ///< least share first; none where it was not taken away
    /// ln(time ratio) / ln(roof / what the thief left of it), at the largest share: 1 where time grows as the bandwidth
    /// is taken away, 0 where it stays. The interval also holds the figure at equal clocks of the SMs. What DRAM's
    /// thief took of L2 on the way is taken out of DRAM's. Nothing where too little was taken away to tell.
    std::optional<Interval> elasticity = {};
    BandwidthFinding finding = BandwidthFinding::cannot_tell;
};

/// Steps summed: one op kind, one layer of all blocks, or one step.
struct TheftGroup {
    std::string name;
    std::vector<std::size_t> steps;  ///< by position
    Interval alone_us;               ///< on the SMs that it has beside a thief, without one
    Interval us;                     ///< with a thief that only computes: all runs with one together
    LevelElasticity dram{.level = Level::dram}, l2{.level = Level::l2};

    /// DRAM's or L2's.
    const LevelElasticity& at(Level level) const { return level == Level::dram ? dram : l2; }
};

struct BandwidthElasticity {
    std::string unavailable;                  ///< why there is none; empty when there is one, or nothing was asked for
    Workers workers = Workers::sms;           ///< what the work runs on
    int multiprocessors = 0;                  ///< the work's own meanwhile; 0: there is none
    std::size_t turns = 0;                    ///< a thief of DRAM and one that computes; 0: not in turns
    bool apart = false;                       ///< whether DRAM's elasticity is known apart from L2's
    std::vector<TheftGroup> by_op, by_layer;  ///< longest first
    std::vector<TheftGroup> steps;            ///< that have kernels, in order
    std::optional<TheftGroup> model;          ///< all steps

    /// That of the step at a position; null where it has none.
    const TheftGroup* of_step(std::size_t position) const;
};
BandwidthElasticity bandwidth_elasticity(const PointFacts& facts);

/// Leaves all that was seen and takes away what follows, for a point whose figures carry no conclusion.
void withhold(BandwidthElasticity& theft);

/// One sentence: what was seen of the group at one level, and what follows. Empty where that was not taken away.
std::string sentence(const TheftGroup& group, const LevelElasticity& level);

}  // namespace kbench
