// Measures the ceilings of a GPU: every variant of a probe is tried, the best is measured.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "bench/device/device.h"
#include "kbench/result.h"

namespace kbench::cuda {

/// What a variant of a ceiling's probe came to when it was tried, in the ceiling's unit.
using Tried = std::function<void(std::string_view ceiling, std::string_view variant, double value)>;

/// Every CUDA ceiling (analysis/machine/ceilings.h) of the GPU `device`, in about `seconds` in all. `tried`, where it
/// is given, is called for every variant.
///
/// A launch runs as many iterations as take about 1.5 ms, timed by events. Every variant is launched three times and
/// judged by the better of the last two. The best is then launched again, the more often the longer `seconds`; the
/// first two of these launches are discarded, the value is the median of the others, each of which is a sample of
/// low and high. Where the power limit could bite, the device rests for 10 ms before every launch: the figure is the
/// rate of a short burst, clock_mhz says at which clock.
std::vector<Ceiling> measure_ceilings(Device& device, double seconds, const Tried& tried = {});

}  // namespace kbench::cuda
