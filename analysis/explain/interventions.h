// What taking something away did to each step, in a word: the ground on which verdicts stand first.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/elasticity.h"
#include "analysis/explain/roof_time.h"
#include "analysis/explain/theft.h"
#include "analysis/facts/point_facts.h"

namespace kbench {

/// What taking something away did to a time. partly: it grew, and whether in proportion is not certain.
enum class Influence { unknown, binds, partly, none };

struct Influences {
    Influence sms = Influence::unknown, dram = Influence::unknown, l2 = Influence::unknown;

    /// Whether the roof cannot be the bottleneck, however long its roof time: what it is the roof of was taken away,
    /// and the time stayed; or SMs were, and the time grew with them, where the roof is none of theirs.
    bool exclude(const RoofTime& roof_time) const;
};

struct Interventions {
    std::vector<Influences> steps;  ///< by position
    Influences model;
};
Interventions interventions_of(const PointFacts& facts, const SmElasticity& sms, const BandwidthElasticity& theft);

/// A sentence each where an intervention and the roof times of counted or modelled work say the opposite of the whole.
std::vector<std::string> contradictions(const PointFacts& facts, const RoofTimeSums& roof_times,
                                        const Interventions& interventions);

}  // namespace kbench
