// Causes as bounds, in a table, and the largest of them.
#include "analysis/explain/largest_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace kbench {
namespace {

/// Where more of the time than this has no fit, the largest cause of the rest is not the whole's.
constexpr double most_unfitted = 0.5;

struct Candidate {
    Bound bound;
    std::string level;
    Interval us;
};

/// Causes other than work and the main loop, as bounds.
struct CauseBound {
    Cause cause;
    Bound bound;
    std::string_view level;
};
constexpr CauseBound cause_bounds[] = {
    {Cause::fixed, Bound::latency, fixed_time_level},      {Cause::uneven, Bound::occupancy, last_wave_level},
    {Cause::dependency, Bound::latency, time_steps_level}, {Cause::gaps, Bound::launch, ""},
    {Cause::unexplained, Bound::not_identifiable, ""},
};

/// A main loop below its roof is bound by a unit that is busy in most of it; else it waits.
Candidate main_loop(const Interval& us, const UnitActivity& units, const CycleAccount& cycles) {
    if (units.busiest().share >= half_busy_unit_share)
        return {units.memory.share > units.pipe.share ? Bound::bandwidth : Bound::compute,
                std::string(units.busiest().name), us};
    return {Bound::latency,
            cycles.lost.empty() ? std::string(main_loop_level)
                                : fmt::format("{}: {}", main_loop_level, cycles.lost.front().reason),
            us};
}

std::optional<LargestCause> largest_of(std::vector<Candidate> candidates, const CauseLines& lines) {
    for (const auto& [cause, bound, level] : cause_bounds)
        candidates.push_back({bound, std::string(level), lines[cause]});
    std::ranges::stable_sort(candidates, std::greater{}, [](const Candidate& c) { return c.us.value; });
    const Candidate& first = candidates.front();
    if (first.us.value <= 0 || first.bound == Bound::not_identifiable) return std::nullopt;
    LargestCause largest{first.bound, first.level, first.us, true, ""};
    for (const Candidate& other : candidates) {
        if (other.bound == first.bound || other.us.value <= 0) continue;
        if (largest.second.empty() && other.bound != Bound::not_identifiable)
            largest.second = other.level.empty() ? std::string(name(other.bound))
                                                 : fmt::format("{} ({})", name(other.bound), other.level);
        if (other.us.high >= first.us.low) largest.is_clear = false;
    }
    return largest;
}

}  // namespace

std::optional<LargestCause> largest_cause(const StepCauses& step, const UnitActivity& units,
                                          const CycleAccount& cycles) {
    if (step.time_us <= 0 || !step.no_fit.empty()) return std::nullopt;
    const CauseLines& lines = step.at_run_clock;
    std::vector<Candidate> candidates{main_loop(lines[Cause::main_loop], units, cycles)};
    if (!step.roof.empty()) {
        Interval work = lines[Cause::useful];
        work += lines[Cause::extra];
        candidates.push_back({step.is_at_memory ? Bound::bandwidth : Bound::compute, step.roof, work});
    }
    return largest_of(std::move(candidates), lines);
}

std::optional<LargestCause> largest_cause(const CauseGroup& group) {
    if (group.time_us <= 0 || group.unfitted_us > most_unfitted * group.time_us) return std::nullopt;
    std::vector<Candidate> candidates{
        {Bound::latency, std::string(main_loop_level), group.at_run_clock[Cause::main_loop]}};
    for (const CausePart& roof : group.at_roofs)
        candidates.push_back({roof.is_at_memory ? Bound::bandwidth : Bound::compute, roof.name, roof.us});
    return largest_of(std::move(candidates), group.at_run_clock);
}

}  // namespace kbench
