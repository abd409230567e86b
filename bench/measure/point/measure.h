// One point from its plan to its counters: the one order in which things are measured, for a model and for a single op.
#pragma once

#include <memory>
#include <span>

#include "bench/measure/point/forward.h"
#include "bench/measure/point/parts.h"
#include "kbench/result.h"

namespace kbench {

/// What measure() leaves behind: `forward` runs again as it was measured, as long as its plan lives.
struct Measured {
    std::unique_ptr<Forward> forward;
};

/// Measures the plan of `at` and fills its point in as it goes, so that one that fails keeps what was found before.
/// Throws MeasurementError for wrong results, DeviceError where the device cannot go on; what merely cannot be recorded
/// or counted is told in the point.
Measured measure(const PartContext& at);

/// Throws DeviceError with the reason when `request` names counters and some finished point has none.
void require_counted(std::span<const Point> points, const CounterRequest& request);

}  // namespace kbench
