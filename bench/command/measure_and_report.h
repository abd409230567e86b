// What every command does that measures the points of a model: device, ceilings, points, result.json and the reports.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bench/command/options.h"
#include "bench/device/device.h"
#include "bench/measure/sweep/run.h"
#include "kbench/result.h"

namespace kbench {

/// Called when the device is there and before anything is measured: may choose the points, and what of them is left
/// out. The gate may keep `result`, which outlives it.
using PrepareRun = std::function<std::unique_ptr<PointGate>(Device& device, Result& result)>;

/// Returns the exit code; throws kbench::Error.
int measure_and_report(RunRequest& request, const std::string& command_line, const PrepareRun& prepare = {});

}  // namespace kbench
