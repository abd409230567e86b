// What a thief beside known work must show of it, as kbench has it.
#pragma once

#include <optional>
#include <string>

#include "analysis/explain/theft.h"
#include "tests/truths/truth.h"

namespace kbench {

/// What a thief takes is known to some percent and the other's traffic is not all of one kind: reads, writes, hits far
/// and near.
inline constexpr double elasticity_tolerance = 0.3;

/// On a CPU, whose bandwidth others take parts of, kbench may say that an elasticity is unknown. A GPU is nobody
/// else's.
inline bool is_untold(const KnownResult& known, const LevelElasticity& found) {
    return !known.explained.facts.steps.front().on_gpu && found.finding == BandwidthFinding::cannot_tell;
}

/// The elasticity of the first step, and whether that bandwidth is said to bind it.
inline void add_elasticity(Planted& planted, Level level, double elasticity) {
    const std::string name = level == Level::dram ? "DRAM" : "L2";
    const auto of_step = [level](const KnownResult& known) -> const LevelElasticity* {
        const TheftGroup* step = known.explained.theft.of_step(0);
        return step == nullptr ? nullptr : &step->at(level);
    };
    planted.figures.push_back({name + "'s elasticity", elasticity,
                               [of_step](const KnownResult& known) -> std::optional<double> {
                                   const LevelElasticity* found = of_step(known);
                                   if (found == nullptr || !found->elasticity) return std::nullopt;
                                   if (is_untold(known, *found)) return std::nullopt;
                                   return found->elasticity->value;
                               },
                               Tolerance::of_whole, elasticity_tolerance});
    planted.figures.push_back({name + " binds", elasticity,
                               [of_step](const KnownResult& known) -> std::optional<double> {
                                   const LevelElasticity* found = of_step(known);
                                   if (found == nullptr || is_untold(known, *found)) return std::nullopt;
                                   return found->finding == BandwidthFinding::binds ? 1 : 0;
                               },
                               Tolerance::of_whole});
}

}  // namespace kbench
