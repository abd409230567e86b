// What a run measures, and how.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "bench/measure/point/point_options.h"
#include "bench/measure/sweep/sweep.h"
#include "bench/plan/data/inputs.h"
#include "bench/plan/fuse.h"
#include "models/spec.h"

namespace kbench {

struct RunOptions : PointOptions, SweepOptions {
    ModelSpec model;
    ProviderChoice providers;
    std::optional<std::filesystem::path> weights;
    FilesByName inputs, dumps;  ///< for the model's inputs and outputs
    std::filesystem::path dump_gradients = {};
    std::filesystem::path out;
    bool compress = false;  ///< result.json.gz
    bool retune = false, deterministic = false;
    std::filesystem::path cache_directory;
    /// Instead of all values of the axes with each other: these points, in this order. A study's are no grid.
    std::optional<std::vector<PointSpec>> listed = {};

    /// The axes that the model has, where not all have them, with its own values.
    AxisValues of_model() const;
    std::vector<PointSpec> points() const {
        return listed ? shard_of_points(*listed, shard, shards) : sweep_points(*this, of_model());
    }
};

}  // namespace kbench
