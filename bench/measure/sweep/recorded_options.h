// The options of a run as its result records them.
#pragma once

#include <map>
#include <string>

#include "bench/device/device.h"
#include "bench/measure/sweep/run_options.h"

namespace kbench {

/// Result::options: all that decides how a point is measured, the model's configuration among it. Files are named with
/// a hash of their contents, without their directory. Which points there are is not in it.
std::map<std::string, std::string> recorded_options(const RunOptions& options, const Device& device);

}  // namespace kbench
