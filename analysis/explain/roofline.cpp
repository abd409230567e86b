// Points of the roofline from the steps' roof times: the same bytes and FLOPs, as intensities and rates.
#include "analysis/explain/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kbench {
namespace {

/// What is summed for one mark.
struct Sum {
    std::string layer, op;
    double time_us = 0, flops = 0;
    std::array<double, std::size(levels)> bytes{};  ///< by level; 0: not known
    double unfused_bytes = 0;
    bool counted = true;  ///< DRAM bytes are counted, so that the unfused traffic is a mark of its own
    double compute_us = 0;
    std::map<std::string, double> unit_us;  ///< ceiling of a unit: its roof time

    void add(const StepFacts& facts, const StepRoofTimes& roof_times) {
        if (facts.time_us <= 0) return;  // its work would count at the others' time
        const StepResult& step = *facts.step;
        time_us += facts.time_us;
        flops += step.cost.flops;
        unfused_bytes += step.cost.bytes();
        for (const RoofTime& roof_time : roof_times.work) {
            if (roof_time.level) {
                bytes[static_cast<std::size_t>(*roof_time.level)] += roof_time.work;
                if (*roof_time.level == Level::dram && roof_time.origin != Origin::measured) counted = false;
            } else {
                compute_us += roof_time.us;
                unit_us[roof_time.roof.ceiling] += roof_time.us;
            }
        }
    }

    std::string unit() const {
        const auto longest =
            std::ranges::max_element(unit_us, {}, [](const auto& ceiling_us) { return ceiling_us.second; });
        return longest == unit_us.end() ? "" : longest->first;
    }
};

void add_marks(std::vector<RooflinePoint>& marks, const std::string& name, const Sum& sum, int step,
               const Roofs& roofs) {
    const auto add = [&](Level level, double bytes, bool unfused) {
        const std::optional<Roof> bandwidth = roofs.bandwidth(level);
        if (bytes <= 0 || sum.time_us <= 0 || sum.flops <= 0 || !bandwidth) return;
        RooflinePoint mark;
        mark.name = name;
        mark.layer = sum.layer;
        mark.op = sum.op;
        mark.level = level;
        mark.time_us = sum.time_us;
        mark.flops = sum.flops;
        mark.bytes = bytes;
        mark.intensity = sum.flops / bytes;
        mark.flop_per_s = sum.flops / sum.time_us * 1e6;
        mark.unfused = unfused;
        const double moving_us = bytes / bandwidth->per_s * 1e6;
        mark.roof = moving_us > sum.compute_us ? std::string(bandwidth->ceiling) : sum.unit();
        mark.step = step;
        mark.roof_share = std::max(sum.compute_us, moving_us) / sum.time_us;
        marks.push_back(std::move(mark));
    };
    for (const Level level : levels) {
        const bool known = level != Level::dram || sum.counted;
        if (known) add(level, sum.bytes[static_cast<std::size_t>(level)], false);
    }
    add(Level::dram, sum.unfused_bytes, true);
}

std::vector<RooflinePoint> group_marks(const PointFacts& facts, std::span<const StepRoofTimes> roof_times,
                                       const std::vector<NamedSteps>& groups) {
    std::vector<RooflinePoint> marks;
    for (const auto& [name, steps] : groups) {
        Sum sum;
        const StepResult& first = *facts.steps[steps.front()].step;
        sum.layer = layer_group(first.layer);
        sum.op = first.op;
        for (const std::size_t i : steps) {
            const StepResult& step = *facts.steps[i].step;
            if (sum.op != step.op) sum.op.clear();
            if (sum.layer != layer_group(step.layer)) sum.layer.clear();
            sum.add(facts.steps[i], roof_times[i]);
        }
        add_marks(marks, name, sum, -1, facts.roofs);
    }
    return marks;
}

}  // namespace

Roofline make_roofline(const PointFacts& facts, std::span<const StepRoofTimes> roof_times) {
    Roofline roofline;
    const Roofs& roofs = facts.roofs;
    roofline.unavailable = !facts.unavailable.empty() ? facts.unavailable : roofs.unavailable();
    if (!roofline.unavailable.empty()) return roofline;
    for (const Level level : levels)
        if (const std::optional<Roof> roof = roofs.bandwidth(level)) roofline.bandwidths.push_back(*roof);
    NamedSteps model{"model", {}};
    for (std::size_t i = 0; i < roof_times.size(); ++i) {
        const StepResult& step = *facts.steps[i].step;
        Sum sum;
        sum.layer = step.layer;
        sum.op = step.op;
        sum.add(facts.steps[i], roof_times[i]);
        add_marks(roofline.steps, fmt::format("{} {}", step.index, step.layer), sum, step.index, roofs);
        if (const RoofTime* unit = roof_times[i].at({});
            unit != nullptr &&
            std::ranges::find(roofline.units, unit->roof.ceiling, &Roof::ceiling) == roofline.units.end())
            roofline.units.push_back(unit->roof);
        model.steps.push_back(i);
    }
    roofline.layers = group_marks(facts, roof_times, facts.by_layer);
    roofline.ops = group_marks(facts, roof_times, facts.by_op);
    if (!model.steps.empty()) roofline.model = group_marks(facts, roof_times, {model});
    return roofline;
}

}  // namespace kbench
