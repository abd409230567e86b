// Times of ranges on a CPU, by its clock.
#pragma once

#include <cstddef>
#include <span>

#include "bench/profile/profiler.h"

namespace kbench {

/// Fewest launches in the times of ranges.
inline constexpr std::size_t fewest_launches_on_cpu = 2;

/// As Profiler::time_ranges: runs ranges for half of `seconds` to warm up, then launches for as long, with a look at
/// the clock between ranges. The warm-up ends behind any of them: there is no more of a long launch than it needs.
/// The clock is that of the calling thread's core, read between launches.
RangeTimes time_ranges_on_cpu(std::span<const WorkRange> ranges, double seconds, const RecordedLaunches& around);

}  // namespace kbench
