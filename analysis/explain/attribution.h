// Bandwidth attribution: which bytes cost which milliseconds, by role and by level of memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/explain/roof_time.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// Bytes of one role at DRAM. What was counted is split among roles as docs/method.md says: weights are cold, so they
/// come first; what is left goes to the others in proportion to their unfused traffic.
struct RoleTraffic {
    Role role;
    double unfused_bytes = 0;     ///< the cost model's
    double attributed_bytes = 0;  ///< its part of the counted bytes; without counters the unfused traffic
    double dram_ms = 0;           ///< attributed bytes over DRAM's bandwidth, hidden or not
    double exposed_ms = 0;        ///< the part of it in DRAM-bound steps
};

/// Bytes of one level.
struct LevelTraffic {
    Level level;
    double bytes = 0;
    double ms = 0;          ///< over the level's bandwidth
    double binding_ms = 0;  ///< roof time of the steps that are bound by this level
    Origin origin = Origin::measured;
};

/// A layer (of all blocks) whose measured DRAM bytes differ from the unfused traffic.
struct LayerTraffic {
    std::string layer;
    double unfused_bytes = 0, measured_bytes = 0, l2_bytes = 0;
    double excess_ms = 0;  ///< bytes beyond the unfused traffic over DRAM's bandwidth; negative: kept in caches
    std::string
        finding;  ///< one sentence, such as "c_fc: while it runs 1.4 times its unfused traffic move"; may be empty
};

struct Attribution {
    std::string unavailable;
    bool counted = false;               ///< by hardware counters; else the cost model's
    std::vector<RoleTraffic> roles;     ///< those with bytes, in the order of Role
    double excess_bytes = 0;            ///< counted beyond unfused traffic, over the steps where it is positive
    double kept_bytes = 0;              ///< unfused traffic beyond counted ones: what caches kept from DRAM
    double excess_ms = 0, kept_ms = 0;  ///< over DRAM's bandwidth
    std::vector<LevelTraffic> levels;
    std::vector<LayerTraffic> layers;  ///< most bytes first
    double dram_binding_share = 0;     ///< whole time of the steps that DRAM binds, over the end-to-end time
    double activation_ms = 0;          ///< DRAM time of activations and scores: the most that fusing can save
};

/// `roof_times`: one a step.
Attribution attribute_bandwidth(const PointFacts& facts, std::span<const StepRoofTimes> roof_times);

}  // namespace kbench
