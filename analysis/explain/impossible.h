// Figures that contradict physics or each other: from them nothing follows, but that one of them is wrong.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/explain/roof_time.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// A roof time over this share of the time cannot be: clocks, counters and roofs are that exact.
inline constexpr double impossible_share = 1.05;

/// One sentence each, with what may be wrong, the likeliest first. The point may have a verification that failed,
/// looked at nothing or contradicts itself; times that are not above 0; FLOPs, or bytes that were counted, that take
/// longer at their roof than the time there was, or on fewer SMs at their part of it; more instructions a cycle than an
/// SM has schedulers; SMs active for longer than they ran. The machine may have a roof below that of a slower level, or
/// be a device whose datasheet its own roofs refute. Empty where all can be.
std::vector<std::string> impossible_figures(const Result& result, const PointFacts& facts,
                                            std::span<const StepRoofTimes> roof_times);

/// What `of_points` has of each of `points`, each once: with its point's name where it is one point's of several.
std::vector<std::string> each_once(std::span<const Point> points,
                                   const std::vector<std::vector<std::string>>& of_points);
}  // namespace kbench
