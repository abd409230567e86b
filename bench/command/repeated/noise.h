// kbench doctor --noise: how much runs of one command differ on this machine.
#pragma once

#include <string>
#include <vector>

namespace kbench {

/// Runs `kbench run` with `options`, or with a model of its own choice where there are none, again and again in
/// processes of their own, prints how much their medians differ, and remembers it. Returns the exit code; throws
/// UsageError for options that are wrong or make more than one point, MeasurementError when a run fails.
int measure_noise(const std::vector<std::string>& options);

}  // namespace kbench
