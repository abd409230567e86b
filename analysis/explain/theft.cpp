// Sums of steps beside each thief, and the rule that tells what follows.
#include "analysis/explain/theft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "analysis/explain/step_groups.h"

namespace kbench {
namespace {

/// From here on time grows as bandwidth is taken away, if the interval lies above `binds_for_certain`. Below 1, as work
/// that uses 90 % of a roof loses nothing to the first 10 % that are taken: with 30 % it is at 0.7.
constexpr double binds_from = 0.6, binds_for_certain = 0.5;
/// Up to here it stays, if the interval lies below `stays_for_certain`. Requests that wait longer beside a thief slow
/// chains of them down, too.
constexpr double stays_up_to = 0.2, stays_for_certain = 0.3;
/// A thief that took less says nothing: 1 % of time is an elasticity of 0.2.
constexpr double least_share = 0.05;
/// Shares above this part of the largest are the same: each is known to a tenth. Work that fills DRAM leaves a thief no
/// more of it, however much more it is asked to take.
constexpr double same_share = 0.8;

/// Several runs of one kind as one.
struct MergedRuns {
    Interval us;
    double clock_mhz = 0;  ///< 0: unknown
};

/// Mean of runs' medians. Two runs' interval holds all of both. That of more is a mean's, so that one run that others
/// disturbed does not make it as wide as that run's: the runs' own intervals, and what drifted between them.
Interval mean_of(const std::vector<Interval>& runs) {
    // 95 % of means of three lie within so many ranges of their samples (Lord, Biometrika 34, 1947); of more, within
    // fewer.
    constexpr double ranges = 1.304;
    const auto count = static_cast<double>(runs.size());
    double mean = 0, below = 0, above = 0;
    for (const Interval& run : runs) {
        mean += run.value / count;
        below += (run.value - run.low) * (run.value - run.low);
        above += (run.high - run.value) * (run.high - run.value);
    }
    if (runs.size() < 3)
        return {mean, std::ranges::min(runs, {}, &Interval::low).low, std::ranges::max(runs, {}, &Interval::high).high};
    const auto [least, most] = std::ranges::minmax(runs, {}, &Interval::value);
    const double drifted = ranges * (most.value - least.value);
    return {mean, mean - std::hypot(std::sqrt(below) / count, drifted),
            mean + std::hypot(std::sqrt(above) / count, drifted)};
}

MergedRuns merged(const PointFacts& facts, Taken taken, const std::vector<std::size_t>& steps) {
    std::vector<Interval> runs;
    double clocks_mhz = 0;
    bool has_clocks = true;
    for (const TheftTimes& times : facts.theft_times) {
        if (times.taken != taken) continue;
        runs.push_back(sum_of_steps(times.step_us, steps));
        clocks_mhz += times.clock_mhz;
        has_clocks = has_clocks && times.clock_mhz > 0;
    }
    if (runs.empty()) return {};
    return {mean_of(runs), has_clocks ? clocks_mhz / static_cast<double>(runs.size()) : 0};
}

/// ln(time ratio) as recorded; its interval also holds that at equal clocks.
Interval slowdown(const Interval& us, double clock_mhz, const MergedRuns& computing) {
    Interval grew = log_ratio(us, computing.us);
    const double clock = clock_mhz > 0 && computing.clock_mhz > 0 ? std::log(clock_mhz / computing.clock_mhz) : 0;
    grew.low = std::min(grew.low, grew.low + clock);
    grew.high = std::max(grew.high, grew.high + clock);
    return grew;
}

/// How much was taken away, as a logarithm: of the roof over what is left of it.
double taken_away(double share) { return -std::log(1 - share); }

/// The run that took the largest share of a level; null where none took enough.
const TheftTimes* largest(const PointFacts& facts, Taken taken) {
    const TheftTimes* most = nullptr;
    for (const TheftTimes& times : facts.theft_times)
        if (times.taken == taken && times.share >= least_share && (most == nullptr || times.share > most->share))
            most = &times;
    return most;
}

/// What DRAM's thief took of L2, through which its bytes pass: a share of L2's roof for each of DRAM's. 0: unknown.
double l2_share_of_dram(const PointFacts& facts) {
    const std::optional<Roof> dram = facts.roofs.bandwidth(Level::dram), l2 = facts.roofs.bandwidth(Level::l2);
    return dram && l2 && l2->per_s > dram->per_s ? dram->per_s / l2->per_s : 0;
}

/// Whether a smaller share slowed the group down more than the largest one did, beyond their intervals.
bool contradicts_itself(const std::vector<TheftEffect>& effects) {
    const TheftEffect& most = effects.back();
    return std::ranges::any_of(effects, [&](const TheftEffect& effect) {
        return effect.share <= same_share * most.share && effect.ratio.low > most.ratio.high;
    });
}

BandwidthFinding finding_of(const LevelElasticity& level) {
    if (!level.elasticity || contradicts_itself(level.effects)) return BandwidthFinding::cannot_tell;
    const Interval& e = *level.elasticity;
    if (e.value >= binds_from && e.low > binds_for_certain) return BandwidthFinding::binds;
    if (e.value <= stays_up_to && e.high < stays_for_certain) return BandwidthFinding::does_not_bind;
    return e.low > stays_up_to ? BandwidthFinding::binds_partly : BandwidthFinding::cannot_tell;
}

/// Fills in the elasticities at the largest shares: L2's first, as DRAM's thief takes L2's bandwidth as well.
void add_elasticities(TheftGroup& group, const PointFacts& facts, const MergedRuns& computing) {
    const auto grew = [&](const TheftTimes& times) {
        return slowdown(sum_of_steps(times.step_us, group.steps), times.clock_mhz, computing);
    };
    const auto over = [](const Interval& of, double under) {
        return Interval{of.value / under, of.low / under, of.high / under};
    };
    if (const TheftTimes* run = largest(facts, Taken::l2))
        group.l2.elasticity = over(grew(*run), taken_away(run->share));
    if (const TheftTimes* run = largest(facts, Taken::dram)) {
        Interval by_dram = grew(*run);
        if (group.l2.elasticity) {
            const double of_l2 = taken_away(run->share * l2_share_of_dram(facts));
            // Less bandwidth makes nothing faster: a negative elasticity is an error and takes nothing out.
            by_dram.value -= of_l2 * std::max(0.0, group.l2.elasticity->value);
            by_dram.low -= of_l2 * std::max(0.0, group.l2.elasticity->high);
            by_dram.high -= of_l2 * std::max(0.0, group.l2.elasticity->low);
        }
        group.dram.elasticity = over(by_dram, taken_away(run->share));
    }
}

TheftGroup theft_group(const PointFacts& facts, std::string name, const std::vector<std::size_t>& steps) {
    TheftGroup group;
    group.name = std::move(name);
    group.steps = steps;
    group.alone_us = merged(facts, Taken::nothing, steps).us;
    const MergedRuns computing = merged(facts, Taken::compute, steps);
    group.us = computing.us;
    for (const TheftTimes& times : facts.theft_times) {
        if (times.taken != Taken::dram && times.taken != Taken::l2) continue;
        LevelElasticity& level = times.taken == Taken::dram ? group.dram : group.l2;
        level.effects.push_back({times.share, quotient(sum_of_steps(times.step_us, steps), computing.us)});
    }
    add_elasticities(group, facts, computing);
    for (LevelElasticity* level : {&group.dram, &group.l2}) {
        std::ranges::stable_sort(level->effects, {}, &TheftEffect::share);
        level->finding = finding_of(*level);
    }
    return group;
}

/// "with 30 % of it taken away the time grew by 1.2 % (elasticity 0.03 [-0.02, 0.08])".
std::string seen(const LevelElasticity& level) {
    const TheftEffect& most = level.effects.back();
    const double grew = 100 * (most.ratio.value - 1);
    std::string text = fmt::format("with {:.0f} % of it taken away the time {} by {:.1f} %", 100 * most.share,
                                   grew < 0 ? "fell" : "grew", std::abs(grew));
    if (level.elasticity)
        text += fmt::format(" (elasticity {:.2f} [{:.2f}, {:.2f}])", level.elasticity->value, level.elasticity->low,
                            level.elasticity->high);
    return text;
}

}  // namespace

const TheftGroup* BandwidthElasticity::of_step(std::size_t position) const {
    const auto found = std::ranges::find_if(
        steps, [&](const TheftGroup& group) { return group.steps.size() == 1 && group.steps.front() == position; });
    return found == steps.end() ? nullptr : &*found;
}

BandwidthElasticity bandwidth_elasticity(const PointFacts& facts) {
    BandwidthElasticity result;
    result.workers = facts.workers;
    result.unavailable = facts.theft_unavailable;
    if (facts.theft_times.empty()) return result;
    std::vector<std::size_t> steps;
    for (std::size_t s = 0; s < facts.steps.size(); ++s)
        if (ran_in_all(facts.theft_times, s)) steps.push_back(s);
    if (steps.empty()) {
        result.unavailable = "no step ran kernels beside every thief";
        return result;
    }
    result.multiprocessors = facts.theft_multiprocessors;
    result.apart = largest(facts, Taken::l2) != nullptr && l2_share_of_dram(facts) > 0;
    const auto make = [&](std::string name, const std::vector<std::size_t>& of) {
        return theft_group(facts, std::move(name), of);
    };
    result.by_op = groups_longest_first(facts.by_op, facts.theft_times, make);
    result.by_layer = groups_longest_first(facts.by_layer, facts.theft_times, make);
    for (const std::size_t s : steps) result.steps.push_back(make(facts.steps[s].step->layer, {s}));
    result.model = make("all steps", steps);
    return result;
}

void withhold(BandwidthElasticity& theft) {
    const auto take = [](TheftGroup& group) { group.dram.finding = group.l2.finding = BandwidthFinding::cannot_tell; };
    for (auto* groups : {&theft.by_op, &theft.by_layer, &theft.steps}) std::ranges::for_each(*groups, take);
    if (theft.model) take(*theft.model);
}

std::string sentence(const TheftGroup& group, const LevelElasticity& level) {
    if (level.effects.empty()) return "";
    const std::string_view what = name(level.level);
    switch (level.finding) {
        case BandwidthFinding::binds:
            return fmt::format("{}: {} bandwidth is what binds: {}.", group.name, what, seen(level));
        case BandwidthFinding::binds_partly:
            return fmt::format("{}: {} bandwidth binds at least a part of the time: {}.", group.name, what,
                               seen(level));
        case BandwidthFinding::does_not_bind:
            return fmt::format("{}: {} bandwidth is not what binds: {}.", group.name, what, seen(level));
        case BandwidthFinding::cannot_tell: break;
    }
    return fmt::format("{}: whether {} bandwidth binds is unknown: {}.", group.name, what, seen(level));
}

}  // namespace kbench
