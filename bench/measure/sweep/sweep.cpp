// Combines the values on a sweep's axes to points, in order, and deals them to shards.
#include "bench/measure/sweep/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "kbench/error.h"
#include "models/base/sizes.h"

namespace kbench {
namespace {

/// Axes that advance together, each with its values.
struct AxisGroup {
    std::vector<std::pair<const Axis*, std::vector<AxisValue>>> axes;
    std::size_t size() const { return axes.front().second.size(); }
};

/// Slowest first; zipped axes stand where the slowest of them would.
std::vector<AxisGroup> group_axes(const SweepOptions& sweep, const AxisValues& of_model) {
    std::vector<AxisGroup> groups;
    std::optional<std::size_t> zipped;
    for (const Axis* axis : axes_in_order()) {
        std::vector<AxisValue> values = asked_values(*axis, sweep, of_model);
        if (values.empty()) continue;
        const bool is_zipped = std::ranges::find(sweep.zip, axis->name) != sweep.zip.end();
        if (!is_zipped || !zipped) {
            if (is_zipped) zipped = groups.size();
            groups.push_back({{{axis, std::move(values)}}});
            continue;
        }
        AxisGroup& group = groups[*zipped];
        if (group.size() != values.size())
            throw UsageError(
                fmt::format("--zip: --{} has {} values and --{} {}; lists that go in step are equally long",
                            group.axes.front().first->name, group.size(), axis->name, values.size()));
        group.axes.emplace_back(axis, std::move(values));
    }
    return groups;
}

/// The points of shard `i` of `n`, from 1, where every `fastest` points the axis that changes fastest begins anew: the
/// deal moves on by one whenever it would meet the same values of that axis again.
std::vector<PointSpec> shard_of(const std::vector<PointSpec>& points, std::size_t i, std::size_t n,
                                std::size_t fastest) {
    if (n > points.size()) throw UsageError(fmt::format("--shard {}/{}: the sweep has {} points", i, n, points.size()));
    std::vector<PointSpec> mine;
    for (std::size_t k = 0; k < points.size(); ++k)
        if ((k + k / std::lcm(n, fastest)) % n == i - 1) mine.push_back(points[k]);
    return mine;
}

/// Whether a point of its direction can have the axis.
bool is_of_direction(const Axis& axis, const PointSpec& point) {
    const std::string& direction = point.axes.text("direction");
    if (axis.of_training) return direction == "train";
    return !axis.of_backward || direction != "fwd";
}

/// What other phases alone have goes. A forward does not say that it is one, as none did before there were phases.
void complete_phase(PointSpec& point) {
    const std::string phase = point.axes.phase();
    require_direction(phase, point.axes.text("direction"));
    for (const Axis& axis : axes())
        if (axis.selects_phase ? point.axes.is_usual(axis) : !axis.is_of_phase(phase)) point.axes.erase(axis.name);
}

/// What belongs to training alone: a training step updates weights unless asked otherwise, and other points have none
/// of it.
void complete_training(PointSpec& point, const SweepOptions& sweep) {
    const bool trains = point.axes.text("direction") == "train";
    for (const Axis& axis : axes())
        if (!is_of_direction(axis, point)) point.axes.erase(axis.name);
    if (trains && !sweep.values.contains("optimizer")) point.axes.set("optimizer", "adamw");
    const std::string& precision = point.axes.text("precision");
    if (precision != "fp16" && precision != "bf16") point.axes.erase("master");
}

}  // namespace

void require_direction(std::string_view phase, std::string_view direction) {
    const Axis& axis = axis_named("direction");
    if (text_of(*phase_axis().usual) != phase && text_of(*axis.usual) != direction)
        throw UsageError(fmt::format("--{} {}: --{} {} has {} alone", axis.name, direction, phase_axis().name, phase,
                                     text_of(*axis.usual)));
}

std::vector<AxisValue> asked_values(const Axis& axis, const SweepOptions& sweep, const AxisValues& of_model) {
    if (axis.option.empty()) return {};
    const AxisValue* own = of_model.find(axis.name);
    if (const auto asked = sweep.values.find(axis.name); asked != sweep.values.end()) {
        if (axis.of_model && own == nullptr)
            throw UsageError(fmt::format("--{}: the model has no {}", axis.name, axis.in_full()));
        return asked->second;
    }
    if (own != nullptr) return {*own};
    if (axis.of_model || axis.of_training || axis.of_backward || !axis.usual) return {};
    return {*axis.usual};
}

std::vector<PointSpec> sweep_points(const SweepOptions& sweep, const AxisValues& of_model) {
    const std::vector<AxisGroup> groups = group_axes(sweep, of_model);
    const std::size_t round = std::accumulate(groups.begin(), groups.end(), std::size_t{1},
                                              [](std::size_t n, const AxisGroup& group) { return n * group.size(); });
    if (static_cast<double>(round) * sweep.repeats > static_cast<double>(most_points))
        throw UsageError(fmt::format("the sweep asks for {:.0f} points; at most {}, as each has a file",
                                     static_cast<double>(round) * sweep.repeats, most_points));
    std::vector<PointSpec> points;
    for (int repeat = 1; repeat <= sweep.repeats; ++repeat) {
        for (std::size_t i = 0; i < round; ++i) {
            PointSpec point;
            point.axes.set("repeat", repeat);
            std::vector<const AxisGroup*> beyond_first;
            std::size_t rest = i;
            for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
                if (rest % group->size() > 0) beyond_first.push_back(&*group);
                for (const auto& [axis, values] : group->axes) point.axes.set(axis->name, values[rest % group->size()]);
                rest /= group->size();
            }
            // A phase that has none of a list's axes has one point for the whole list.
            const bool is_repeated = std::ranges::any_of(beyond_first, [&](const AxisGroup* group) {
                return std::ranges::none_of(group->axes,
                                            [&](const auto& of) { return of.first->is_of_phase(point.axes.phase()); });
            });
            if (!is_repeated) points.push_back(std::move(point));
        }
    }
    for (const Axis& axis : axes())
        if (sweep.values.contains(axis.name) &&
            std::ranges::none_of(points, [&](const PointSpec& p) { return is_of_direction(axis, p); }))
            throw UsageError(fmt::format("--{}: only --direction {} has one", axis.name,
                                         axis.of_training ? "train" : "bwd or train"));
    for (const Axis& axis : axes())
        if (sweep.values.contains(axis.name) &&
            std::ranges::none_of(points, [&](const PointSpec& p) { return axis.is_of_phase(p.axes.phase()); }))
            throw UsageError(only_of_its_phases(axis));
    for (PointSpec& point : points) {
        complete_phase(point);
        complete_training(point, sweep);
    }
    std::set<std::string> names;
    for (const PointSpec& point : points)
        if (!names.insert(point.name()).second)
            throw UsageError(
                fmt::format("the point {} is asked for twice; --repeat N measures all points N times", point.name()));
    std::size_t fastest = 1;  // size of the last group that varies
    for (const AxisGroup& group : groups)
        if (group.size() > 1) fastest = group.size();
    return shard_of(points, static_cast<std::size_t>(sweep.shard), static_cast<std::size_t>(sweep.shards), fastest);
}

std::vector<PointSpec> shard_of_points(const std::vector<PointSpec>& points, int shard, int shards) {
    return shard_of(points, static_cast<std::size_t>(shard), static_cast<std::size_t>(shards), 1);
}

}  // namespace kbench
