// Points of the roofline from the ledger's demands: the same bytes and FLOPs, as intensities and rates.
#include "analysis/explain/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "analysis/explain/breakdown.h"

namespace kbench {
namespace {

/// What is summed for one mark.
struct Sum {
    std::string layer, op;
    double time_us = 0, flops = 0;
    std::array<double, std::size(levels)> bytes{};  ///< by level; 0: not known
    double streaming_bytes = 0;
    bool counted = true;  ///< DRAM bytes are counted, so that the streaming bytes are a mark of their own
    double compute_us = 0;
    std::map<std::string, double> unit_us;  ///< ceiling of a unit: time that it demands

    void add(const StepLedger& entry) {
        if (entry.time_us <= 0) return;  // its work would count at the others' time
        const StepResult& step = *entry.step;
        time_us += entry.time_us;
        flops += step.cost.flops;
        streaming_bytes += step.cost.bytes();
        for (const Demand& demand : entry.demands) {
            if (demand.level) {
                bytes[static_cast<std::size_t>(*demand.level)] += demand.work;
                if (*demand.level == Level::dram && demand.origin != Origin::measured) counted = false;
            } else {
                compute_us += demand.us;
                unit_us[demand.roof.ceiling] += demand.us;
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
    const auto add = [&](Level level, double bytes, bool streaming) {
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
        mark.streaming = streaming;
        mark.roof = sum.unit();
        mark.step = step;
        mark.roof_share = std::max(sum.compute_us, bytes / bandwidth->per_s * 1e6) / sum.time_us;
        marks.push_back(std::move(mark));
    };
    for (const Level level : levels) {
        const bool known = level != Level::dram || sum.counted;
        if (known) add(level, sum.bytes[static_cast<std::size_t>(level)], false);
    }
    add(Level::dram, sum.streaming_bytes, true);
}

/// Sums by name in order of appearance.
class Groups {
  public:
    explicit Groups(std::function<std::string(const StepResult&)> name_of) : name_of_(std::move(name_of)) {}

    void add(const StepLedger& entry) {
        const std::string name = name_of_(*entry.step);
        const auto [found, is_new] = index_.try_emplace(name, sums_.size());
        if (is_new) {
            sums_.emplace_back(name, Sum{});
            sums_.back().second.layer = layer_group(entry.step->layer);
            sums_.back().second.op = entry.step->op;
        }
        Sum& sum = sums_[found->second].second;
        if (sum.op != entry.step->op) sum.op.clear();
        if (sum.layer != layer_group(entry.step->layer)) sum.layer.clear();
        sum.add(entry);
    }

    std::vector<RooflinePoint> marks(const Roofs& roofs) const {
        std::vector<RooflinePoint> marks;
        for (const auto& [name, sum] : sums_) add_marks(marks, name, sum, -1, roofs);
        return marks;
    }

  private:
    std::function<std::string(const StepResult&)> name_of_;
    std::map<std::string, std::size_t> index_;
    std::vector<std::pair<std::string, Sum>> sums_;
};

}  // namespace

Roofline make_roofline(const Ledger& ledger, const Roofs& roofs) {
    Roofline roofline;
    roofline.unavailable = !ledger.unavailable.empty() ? ledger.unavailable : ledger.roofs_unavailable;
    if (!roofline.unavailable.empty()) return roofline;
    for (const Level level : levels)
        if (const std::optional<Roof> roof = roofs.bandwidth(level)) roofline.bandwidths.push_back(*roof);
    Groups layers([](const StepResult& step) { return layer_group(step.layer); });
    Groups ops([](const StepResult& step) { return step.op; });
    Groups model([](const StepResult&) { return std::string("model"); });
    for (const StepLedger& entry : ledger.steps) {
        Sum sum;
        sum.layer = entry.step->layer;
        sum.op = entry.step->op;
        sum.add(entry);
        add_marks(roofline.steps, fmt::format("{} {}", entry.step->index, entry.step->layer), sum, entry.step->index,
                  roofs);
        for (const Demand& demand : entry.demands)
            if (!demand.level &&
                std::ranges::find(roofline.units, demand.roof.ceiling, &Roof::ceiling) == roofline.units.end())
                roofline.units.push_back(demand.roof);
        layers.add(entry);
        ops.add(entry);
        model.add(entry);
    }
    roofline.layers = layers.marks(roofs);
    roofline.ops = ops.marks(roofs);
    roofline.model = model.marks(roofs);
    return roofline;
}

}  // namespace kbench
