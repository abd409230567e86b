// Bandwidth attribution: which bytes cost which milliseconds, by role and by level of memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/explain/roof_time.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// Bytes of one role at DRAM. What was counted is split among roles as docs/method.md says: weights are cold, so they
/// come first; what is left goes to the others in proportion to their streaming bytes.
struct RoleTraffic {
    Role role;
    double streaming_bytes = 0;   ///< the cost model's
    double attributed_bytes = 0;  ///< its part of the counted bytes; without counters the streaming bytes
    double dram_ms = 0;           ///< attributed bytes over DRAM's bandwidth, hidden or not
    double exposed_ms = 0;        ///< the part of it in steps that DRAM binds
};

/// Bytes of one level.
struct LevelTraffic {
    Level level;
    double bytes = 0;
    double ms = 0;          ///< over the level's bandwidth
    double binding_ms = 0;  ///< demand of the steps that this level binds
    Origin origin = Origin::measured;
};

/// A layer (of all blocks) whose measured DRAM bytes differ from the streaming bytes.
struct LayerTraffic {
    std::string layer;
    double streaming_bytes = 0, measured_bytes = 0, l2_bytes = 0;
    double excess_ms = 0;  ///< bytes beyond the streaming bytes over DRAM's bandwidth; negative: kept in caches
    std::string
        finding;  ///< one sentence, such as "c_fc: while it runs 1.4 times its streaming bytes move"; may be empty
};

struct Attribution {
    std::string unavailable;
    bool counted = false;               ///< by hardware counters; else the cost model's
    std::vector<RoleTraffic> roles;     ///< those with bytes, in the order of Role
    double excess_bytes = 0;            ///< counted beyond streaming bytes, over the steps where it is positive
    double kept_bytes = 0;              ///< streaming bytes beyond counted ones: what caches kept from DRAM
    double excess_ms = 0, kept_ms = 0;  ///< over DRAM's bandwidth
    std::vector<LevelTraffic> levels;
    std::vector<LayerTraffic> layers;  ///< most bytes first
    double dram_binding_share = 0;     ///< whole time of the steps that DRAM binds, over the end-to-end time
    double activation_ms = 0;          ///< DRAM time of activations and scores: the most that fusing can save
};

/// `demands`: one a step.
Attribution attribute_bandwidth(const PointFacts& facts, std::span<const StepDemands> demands);

}  // namespace kbench
