// Sums of steps.
#include "analysis/explain/step_sums.h"

#include <algorithm>
#include <map>

#include "analysis/facts/point_facts.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// Sums the steps of each `name_of(step)` and provider, or of each name when providers may mix.
template <class NameOf>
StepSums group_steps(const Point& point, NameOf name_of, bool split_by_provider) {
    StepSums result;
    std::map<std::pair<std::string, std::string>, std::size_t> index;
    for (const StepResult& step : point.steps) {
        const std::optional<double> time_us = step.device_us();
        if (!time_us) {
            ++result.untimed_steps;
            continue;
        }
        const std::pair key{std::string(name_of(step)), split_by_provider ? step.provider : std::string()};
        const auto [found, is_new] = index.try_emplace(key, result.groups.size());
        if (is_new) result.groups.emplace_back().name = key.first;

        StepGroup& group = result.groups[found->second];
        ++group.steps;
        group.time_us += *time_us;
        group.flops += step.cost.flops;
        group.bytes += step.cost.bytes();
        add_once(group.providers, step.provider);
        add_once(group.implementations, step.implementation);
        add_once(group.ops, step.op);
        for (const std::string& absorbed : step.absorbs) add_once(group.ops, kind_of(absorbed));
        result.time_us += *time_us;
    }
    if (result.time_us > 0)
        for (StepGroup& group : result.groups) group.share = group.time_us / result.time_us;
    std::stable_sort(result.groups.begin(), result.groups.end(),
                     [](const StepGroup& a, const StepGroup& b) { return a.time_us > b.time_us; });
    return result;
}

}  // namespace

double StepGroup::tflop_per_s() const { return time_us > 0 ? flops / time_us * 1e-6 : 0; }

double StepGroup::gb_per_s() const { return time_us > 0 ? bytes / time_us * 1e-3 : 0; }

StepSums by_op_kind(const Point& point) {
    return group_steps(
        point, [](const StepResult& step) { return step.op; }, true);
}

StepSums by_layer(const Point& point) {
    return group_steps(
        point, [](const StepResult& step) { return layer_group(step.layer); }, false);
}

}  // namespace kbench
