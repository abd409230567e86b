// How findings of elasticities become influences, and a table of what cannot stand beside each.
#include "analysis/explain/interventions.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/explain/verdict.h"
#include "models/base/format.h"

namespace kbench {
namespace {

Influence influence_of(SmFinding finding) {
    switch (finding) {
        case SmFinding::binds: return Influence::binds;
        case SmFinding::binds_partly: return Influence::partly;
        case SmFinding::does_not_bind: return Influence::none;
        case SmFinding::cannot_tell: break;
    }
    return Influence::unknown;
}

Influence influence_of(BandwidthFinding finding) {
    switch (finding) {
        case BandwidthFinding::binds: return Influence::binds;
        case BandwidthFinding::binds_partly: return Influence::partly;
        case BandwidthFinding::does_not_bind: return Influence::none;
        case BandwidthFinding::cannot_tell: break;
    }
    return Influence::unknown;
}

bool ran_everywhere(const PointFacts& facts, std::size_t step) {
    return std::ranges::all_of(facts.sm_times, [&](const SmTimes& times) { return times.step_us[step].low > 0; });
}

/// Each step's own; where that does not tell, its layer's of all blocks.
void add_sms(Interventions& interventions, const PointFacts& facts, const SmElasticity& sms) {
    if (!sms.model) return;
    interventions.model.sms = influence_of(sms.model->finding);
    auto own = sms.steps.begin();
    for (std::size_t s = 0; s < facts.steps.size(); ++s) {
        if (!ran_everywhere(facts, s) || own == sms.steps.end()) continue;
        Influence& influence = interventions.steps[s].sms;
        influence = influence_of((own++)->finding);
        if (influence != Influence::unknown) continue;
        const auto layer = std::ranges::find(sms.by_layer, layer_group(facts.steps[s].step->layer), &SmGroup::name);
        if (layer != sms.by_layer.end()) influence = influence_of(layer->finding);
    }
}

/// Each step's own; where that does not tell, its layer's of all blocks.
void add_theft(Interventions& interventions, const PointFacts& facts, const BandwidthElasticity& theft) {
    if (!theft.model) return;
    interventions.model.dram = influence_of(theft.model->dram.finding);
    interventions.model.l2 = influence_of(theft.model->l2.finding);
    for (std::size_t s = 0; s < facts.steps.size(); ++s) {
        const auto layer =
            std::ranges::find(theft.by_layer, layer_group(facts.steps[s].step->layer), &TheftGroup::name);
        const TheftGroup* groups[] = {theft.of_step(s), layer == theft.by_layer.end() ? nullptr : &*layer};
        for (const TheftGroup* group : groups) {
            if (group == nullptr) continue;
            Influences& influences = interventions.steps[s];
            if (influences.dram == Influence::unknown) influences.dram = influence_of(group->dram.finding);
            if (influences.l2 == Influence::unknown) influences.l2 = influence_of(group->l2.finding);
        }
    }
}

/// What the roof times of SMs, DRAM or L2 have of the steps' time.
double share_of_roofs(const RoofTimeSums& sums, double steps_us, bool (*is_it)(std::string_view name)) {
    double most = 0;
    for (const RoofTimeSum& sum : sums.by_roof)
        if (!sum.is_busy_time && is_it(sum.name)) most = std::max(most, sum.us.value / steps_us);
    return most;
}
bool is_dram(std::string_view name) { return name == kbench::name(Level::dram); }
bool is_l2(std::string_view name) { return name == kbench::name(Level::l2); }
bool is_in_sm(std::string_view name) { return !is_dram(name) && !is_l2(name); }
bool is_shared(std::string_view name) { return !is_in_sm(name); }

/// An outcome of an intervention, and the share of roofs that it cannot stand beside.
struct Contradiction {
    Influence Influences::*taken;
    Influence outcome;
    bool (*roofs)(std::string_view name);
    bool is_above;          ///< the share is that of a roof that binds; else one far below
    std::string_view text;  ///< with the share and what was taken away
    /// On a CPU where that is another one: its DRAM may give more than the threads ask for whose roof it is.
    std::string_view on_cpu = {};
};
constexpr Contradiction table[] = {
    {&Influences::dram, Influence::none, is_dram, true,
     "Taking DRAM's bandwidth away cost nothing, yet its bytes would take {} of the time at full bandwidth: DRAM is not the bottleneck, and the bytes or the roof are wrong.",
     "Taking DRAM's bandwidth away cost nothing, yet its bytes would take {} of the time at the bandwidth that these threads reach: the bottleneck is how many loads they have under way, and not DRAM, or the bytes or the roof are wrong."},
    {&Influences::dram, Influence::binds, is_dram, false,
     "It slows down as DRAM's bandwidth is taken away, yet its bytes would take only {} of the time at full bandwidth: DRAM is the bottleneck, and the bytes are too few or the roof is too high."},
    {&Influences::l2, Influence::none, is_l2, true,
     "Taking L2's bandwidth away cost nothing, yet its bytes would take {} of the time at full bandwidth: L2 is not the bottleneck, and the bytes or the roof are wrong."},
    {&Influences::l2, Influence::binds, is_l2, false,
     "It slows down as L2's bandwidth is taken away, yet its bytes would take only {} of the time at full bandwidth: L2 is the bottleneck, and the bytes are too few or the roof is too high."},
    {&Influences::sms, Influence::none, is_in_sm, true,
     "Taking {1} away cost nothing, yet a roof of theirs would take {0} of the time: {1} are not the bottleneck, and the work or the roof is wrong."},
    {&Influences::sms, Influence::binds, is_shared, true,
     "It slows down as {1} are taken away, yet the bytes of DRAM or L2 would take {0} of the time at full bandwidth: {1} are the bottleneck, and the bytes or the roof are wrong.",
     "It slows down as threads are taken away, yet its bytes would take {} of the time at the bandwidth that all of them reach: the bottleneck is how many loads they have under way, and not DRAM, or the bytes or the roof are wrong."},
};

}  // namespace

bool Influences::exclude(const RoofTime& roof_time) const {
    if (roof_time.level == Level::dram) return dram == Influence::none || sms == Influence::binds;
    if (roof_time.level == Level::l2) return l2 == Influence::none || sms == Influence::binds;
    return sms == Influence::none;
}

Interventions interventions_of(const PointFacts& facts, const SmElasticity& sms, const BandwidthElasticity& theft) {
    Interventions interventions;
    interventions.steps.resize(facts.steps.size());
    add_sms(interventions, facts, sms);
    add_theft(interventions, facts, theft);
    return interventions;
}

std::vector<std::string> contradictions(const PointFacts& facts, const RoofTimeSums& roof_times,
                                        const Interventions& interventions) {
    std::vector<std::string> sentences;
    double steps_us = 0;
    for (const StepFacts& step : facts.steps) steps_us += step.time_us;
    if (steps_us <= 0) return sentences;
    // Bytes that nobody counted are fewer than what was moved.
    const bool is_counted =
        std::ranges::any_of(facts.steps, [](const StepFacts& step) { return dram_traffic(step.counters).has_value(); });
    for (const Contradiction& row : table) {
        if (interventions.model.*row.taken != row.outcome || (!row.is_above && !is_counted)) continue;
        const double share = share_of_roofs(roof_times, steps_us, row.roofs);
        if (row.is_above ? share >= bound_share : share < rejecting_part * bound_share)
            sentences.push_back(fmt::format(
                fmt::runtime(facts.workers == Workers::threads && !row.on_cpu.empty() ? row.on_cpu : row.text),
                percent(share), name(facts.workers)));
    }
    return sentences;
}

}  // namespace kbench
