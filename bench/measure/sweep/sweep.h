// The points of a sweep as data: which there are, in which order, what each is called. Measures nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/point/point_spec.h"
#include "kbench/axes.h"

namespace kbench {

/// What was asked for on each axis.
struct SweepOptions {
    /// By the axis's name: one value, or a list to sweep. Axes without an entry have their usual value.
    std::map<std::string, std::vector<AxisValue>, std::less<>> values;
    std::vector<std::string> zip;  ///< axes whose lists go in step instead of every value with every other
    int repeats = 1;               ///< how often the whole list is gone through
    int shard = 1, shards = 1;     ///< which part of the points, from 1, of how many
};

/// What is to be measured on an axis: what was asked for, else what the model has by itself, else what is usual;
/// nothing on an axis that no option sets or the model does not have.
std::vector<AxisValue> asked_values(const Axis& axis, const SweepOptions& sweep, const AxisValues& of_model);

/// All points in the order in which they are measured: repeat by repeat, then through the axes in their order, the last
/// the fastest. So neighbours in time differ in precision first, and what drifts in time (heat, clocks, other users)
/// meets all points and all repeats alike. Points are dealt out to shards one by one. So a shard of several points has
/// more than one value on the axis that changes fastest. `of_model`: the axes that only
/// some models have, with the model's own values. Throws UsageError when zipped lists differ in length, a point comes
/// twice, the model has no such axis, or there are more shards than points.
std::vector<PointSpec> sweep_points(const SweepOptions& sweep, const AxisValues& of_model);

/// Throws UsageError where points of a phase have no such direction: all but the usual phase run forward alone.
void require_direction(std::string_view phase, std::string_view direction);

/// The points of shard `shard` of `shards`, dealt out one by one. Throws UsageError where there are more
/// shards than points.
std::vector<PointSpec> shard_of_points(const std::vector<PointSpec>& points, int shard, int shards);

}  // namespace kbench
