// Figures of a step as kbench has them, to be compared with truths.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "analysis/facts/executed_flops.h"
#include "tests/truths/truth.h"

namespace kbench {

/// A counter of the judged step, times `scale`.
inline PlantedFigure counted(std::string what, double planted, std::string name, double scale = 1,
                             Tolerance tolerance = Tolerance::of_planted) {
    return {std::move(what), planted,
            [name = std::move(name), scale](const KnownResult& known) -> std::optional<double> {
                const auto value = counter_named(known.step(), name);
                return value ? std::optional(*value * scale) : std::nullopt;
            },
            tolerance};
}

/// Sectors of 32 bytes that SMs asked L2 for.
inline PlantedFigure l2_bytes(double planted) { return counted("bytes asked of L2", planted, "l2_sm_sectors", 32); }

/// Read and written; L2 may still hold what was written last, and so may the pass before.
inline PlantedFigure dram_bytes(double planted) {
    return {"DRAM bytes", planted, [](const KnownResult& known) { return dram_traffic(counters_of(known.step())); }};
}

/// FLOPs executed in the precision that the step claims.
inline PlantedFigure executed(double planted_flops) {
    return {"executed FLOPs", planted_flops,
            [](const KnownResult& known) { return executed_flops(counters_of(known.step()), known.step().precision); }};
}

/// A share of the time by counted cycles.
inline PlantedFigure share_of_time(std::string what, double planted, double CycleAccount::*share) {
    return {std::move(what), planted,
            [share](const KnownResult& known) -> std::optional<double> {
                const CycleAccount& account = known.explained.cycles.steps.front();
                return account.unavailable.empty() ? std::optional(account.*share) : std::nullopt;
            },
            Tolerance::of_whole};
}

/// Cycles of an SM in which it had a warp, mean.
inline PlantedFigure active_cycles(double planted) { return counted("active cycles", planted, "sm_cycles_active"); }

/// The time of the step's kernels over the longest of its roof times, units' as well: 1 at the roof.
inline PlantedFigure time_over_roof_time() {
    return {"time over its roof's", 1, [](const KnownResult& known) -> std::optional<double> {
                const std::vector<RoofTime> roof_times = known.explained.roof_times.front().all();
                const double longest_us = roof_times.empty() ? 0 : roof_times.front().run_us.value;
                const double time_us = known.explained.facts.steps.front().time_us;
                return longest_us > 0 ? std::optional(time_us / longest_us) : std::nullopt;
            }};
}

}  // namespace kbench
