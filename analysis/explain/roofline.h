// The hierarchical roofline: one point a step (or a group) and memory level.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/explain/roof_time.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

struct RooflinePoint {
    std::string name;       ///< "3 h.0.attn", a layer of all blocks, an op kind, or "model"
    std::string layer, op;  ///< groups; op is empty where the group has several
    Level level = Level::dram;
    double time_us = 0;
    double flops = 0, bytes = 0;
    double intensity = 0;  ///< FLOPs a byte at this level
    double flop_per_s = 0;
    bool unfused = false;   ///< the second mark: unfused traffic instead of counted ones (DRAM only)
    std::string roof;       ///< ceiling of the step's unit
    double roof_share = 0;  ///< the rate over min(unit, intensity * bandwidth)
    int step = -1;          ///< index of the step; -1: a group
};

struct Roofline {
    std::string unavailable;
    std::vector<Roof> bandwidths;  ///< in the order of levels
    std::vector<Roof> units;       ///< distinct compute roofs of the steps
    std::vector<RooflinePoint> steps, layers, ops;
    std::vector<RooflinePoint> model;  ///< one a level
};

/// `roof_times`: one a step.
Roofline make_roofline(const PointFacts& facts, std::span<const StepRoofTimes> roof_times);

}  // namespace kbench
