// What is wanted of one point beside its options.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "analysis/machine/ceilings.h"
#include "bench/measure/point/forward.h"
#include "bench/measure/point/point_options.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/data/weights.h"
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

}  // namespace kbench
