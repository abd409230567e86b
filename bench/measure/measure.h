// One point from its plan to its counters: the one order in which things are measured, for a model and for a single op.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/machine/ceilings.h"
#include "bench/device/device.h"
#include "bench/measure/forward.h"
#include "bench/measure/point_options.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/data/weights.h"
#include "bench/plan/plan.h"
#include "bench/profile/profiler.h"
#include "kbench/result.h"

namespace kbench {

/// What is wanted of a plan, and from what it is computed.
struct Wants {
    const PointOptions& options;
    WeightSource& weights;
    FilesByName inputs = {};  ///< the model's; those without a file are random
    /// What verification found before, of the same computations: it is not done again.
    std::optional<Verification> verified;
    /// Takes the samples and fills in point.end_to_end; empty: as sample_end_to_end does (parts.h).
    std::function<void(Forward& forward)> sample;
    bool steps = true, outputs = true, marginal = true, graph_clock = true, sm_scaling = true, size_scaling = true,
         theft = true;
    /// The machine's, of which a thief takes shares; without them there is no theft.
    Roofs roofs = {};
    FilesByName dumps = {};                     ///< also write these outputs to .npy files
    std::filesystem::path dump_gradients = {};  ///< also write the weights' gradients there, by the weights' names
    /// Called with a part's name before it begins, and again within long ones; what it throws ends the measurement.
    std::function<void(const std::string& part)> at;
};

/// What measure() leaves behind: `forward` runs again as it was measured, as long as its plan lives.
struct Measured {
    std::unique_ptr<Forward> forward;
};

/// Measures `plan`, a plan of `point` by plan_point, and fills the point in as it goes, so that one that fails keeps
/// what was found before. `warnings` get a line for what makes figures less than they could be. Throws MeasurementError
/// for wrong results, DeviceError where the device cannot go on; what merely cannot be recorded or counted is told in
/// the point.
Measured measure(Plan& plan, Device& device, Profiler& profiler, const Wants& wants, Point& point,
                 std::vector<std::string>& warnings);

/// Throws DeviceError with the reason when `request` names counters and some finished point has none.
void require_counted(std::span<const Point> points, const CounterRequest& request);

}  // namespace kbench
