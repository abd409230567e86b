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

/// ln of the time ratio at the largest share of a level.
struct Slowdown {
    double share;
    Interval recorded;
    Interval grew;  ///< the same; its interval also holds that at equal clocks
};

/// ln(clock / clock of the run that only computes); 0 where one is unknown.
double log_clocks(double clock_mhz, double computing_mhz) {
    return clock_mhz > 0 && computing_mhz > 0 ? std::log(clock_mhz / computing_mhz) : 0;
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

/// The median and its interval between order statistics (the sign test's: as many samples lie below the median as coins
/// show heads). It holds for samples of any spread that do not resemble their neighbours. Turns do not: what drifts
/// from one to the next is in both runs of each, and what drifts within one has the other sign in the next.
Interval median_of_turns(std::vector<double> samples) {
    std::ranges::sort(samples);
    const std::size_t n = samples.size();
    double exactly = std::pow(0.5, static_cast<double>(n)), below = 0;  // the chance of `outside` heads, of fewer
    std::size_t outside = 0;
    for (; below + exactly <= 0.025; ++outside) {
        below += exactly;
        exactly *= static_cast<double>(n - outside) / static_cast<double>(outside + 1);
    }
    const std::size_t low = outside > 0 ? outside - 1 : 0;
    return {(samples[(n - 1) / 2] + samples[n / 2]) / 2, samples[low], samples[n - 1 - low]};
}

/// A run that takes bandwidth beside one that only computes, both in a row.
struct Turn {
    const TheftTimes *taking, *computing;
};

/// The turns of a level, each run in one of them, if they are enough for an interval of their median; else none. One in
/// which a thief got far less than in the others is left out.
std::vector<Turn> turns_of(const PointFacts& facts, Taken taken) {
    std::vector<Turn> turns;
    std::vector<double> shares;
    for (std::size_t i = 0; i + 1 < facts.theft_times.size(); ++i) {
        Turn turn{&facts.theft_times[i], &facts.theft_times[i + 1]};
        if (turn.taking->taken == Taken::compute) std::swap(turn.taking, turn.computing);
        if (turn.taking->taken != taken || turn.computing->taken != Taken::compute) continue;
        turns.push_back(turn);
        shares.push_back(turn.taking->share);
        ++i;
    }
    if (turns.size() < turns_for_interval) return {};
    const double least = std::max(least_share, same_share * median_of_turns(shares).value);
    std::erase_if(turns, [least](const Turn& turn) { return turn.taking->share < least; });
    return turns.size() < turns_for_interval ? std::vector<Turn>{} : turns;
}

/// By turns where there are some: what drifts more slowly than they change is in both runs of one. Else the run of the
/// largest share against all runs that only compute. Nothing where their times are not above 0 for certain.
std::optional<Slowdown> slowdown(const PointFacts& facts, Taken taken, const std::vector<std::size_t>& steps,
                                 const MergedRuns& computing) {
    std::vector<double> recorded, at_equal_clocks, shares;
    for (const auto& [taking, beside] : turns_of(facts, taken)) {
        const double us = sum_of_steps(taking->step_us, steps).value;
        const double beside_us = sum_of_steps(beside->step_us, steps).value;
        if (us <= 0 || beside_us <= 0) return std::nullopt;
        recorded.push_back(std::log(us / beside_us));
        at_equal_clocks.push_back(recorded.back() + log_clocks(taking->clock_mhz, beside->clock_mhz));
        shares.push_back(taking->share);
    }
    if (!recorded.empty()) {
        const Interval ratio = median_of_turns(recorded), at_clocks = median_of_turns(at_equal_clocks);
        return Slowdown{median_of_turns(shares).value,
                        ratio,
                        {ratio.value, std::min(ratio.low, at_clocks.low), std::max(ratio.high, at_clocks.high)}};
    }
    const TheftTimes* most = largest(facts, taken);
    if (most == nullptr) return std::nullopt;
    const Interval us = sum_of_steps(most->step_us, steps);
    if (us.low <= 0 || computing.us.low <= 0) return std::nullopt;
    const Interval ratio = log_ratio(us, computing.us);
    const double clock = log_clocks(most->clock_mhz, computing.clock_mhz);
    return Slowdown{most->share,
                    ratio,
                    {ratio.value, std::min(ratio.low, ratio.low + clock), std::max(ratio.high, ratio.high + clock)}};
}

/// What DRAM's thief took of L2, through which its bytes pass: a share of L2's roof for each of DRAM's. 0: unknown.
double l2_share_of_dram(const PointFacts& facts) {
    const std::optional<Roof> dram = facts.roofs.bandwidth(Level::dram), l2 = facts.roofs.bandwidth(Level::l2);
    return dram && l2 && l2->per_s > dram->per_s ? dram->per_s / l2->per_s : 0;
}

/// Whether a smaller share slowed the group down more than the largest one did, beyond their intervals, and more than
/// what is said to stay.
bool contradicts_itself(const std::vector<TheftEffect>& effects) {
    const TheftEffect& most = effects.back();
    return std::ranges::any_of(effects, [&](const TheftEffect& effect) {
        return effect.share <= same_share * most.share && effect.ratio.low > most.ratio.high &&
               std::log(effect.ratio.low) > stays_up_to * taken_away(effect.share);
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
void add_elasticities(TheftGroup& group, const PointFacts& facts, const std::optional<Slowdown>& by_dram,
                      const std::optional<Slowdown>& by_l2) {
    const auto over = [](const Interval& of, double under) {
        return Interval{of.value / under, of.low / under, of.high / under};
    };
    if (by_l2) group.l2.elasticity = over(by_l2->grew, taken_away(by_l2->share));
    if (!by_dram) return;
    Interval grew = by_dram->grew;
    if (group.l2.elasticity) {
        const double of_l2 = taken_away(by_dram->share * l2_share_of_dram(facts));
        // Less bandwidth makes nothing faster: a negative elasticity is an error and takes nothing out.
        grew.value -= of_l2 * std::max(0.0, group.l2.elasticity->value);
        grew.low -= of_l2 * std::max(0.0, group.l2.elasticity->high);
        grew.high -= of_l2 * std::max(0.0, group.l2.elasticity->low);
    }
    group.dram.elasticity = over(grew, taken_away(by_dram->share));
}

/// What each share did, least first; turns are one.
std::vector<TheftEffect> effects_of(const PointFacts& facts, Taken taken, const std::vector<std::size_t>& steps,
                                    const MergedRuns& computing, const std::optional<Slowdown>& largest_share) {
    if (largest_share && !turns_of(facts, taken).empty()) {
        const Interval& grew = largest_share->recorded;
        return {{largest_share->share, {std::exp(grew.value), std::exp(grew.low), std::exp(grew.high)}}};
    }
    std::vector<TheftEffect> effects;
    for (const TheftTimes& times : facts.theft_times)
        if (times.taken == taken)
            effects.push_back({times.share, quotient(sum_of_steps(times.step_us, steps), computing.us)});
    std::ranges::stable_sort(effects, {}, &TheftEffect::share);
    return effects;
}

TheftGroup theft_group(const PointFacts& facts, std::string name, const std::vector<std::size_t>& steps) {
    TheftGroup group;
    group.name = std::move(name);
    group.steps = steps;
    group.alone_us = merged(facts, Taken::nothing, steps).us;
    const MergedRuns computing = merged(facts, Taken::compute, steps);
    group.us = computing.us;
    const std::optional<Slowdown> by_dram = slowdown(facts, Taken::dram, steps, computing),
                                  by_l2 = slowdown(facts, Taken::l2, steps, computing);
    group.dram.effects = effects_of(facts, Taken::dram, steps, computing, by_dram);
    group.l2.effects = effects_of(facts, Taken::l2, steps, computing, by_l2);
    add_elasticities(group, facts, by_dram, by_l2);
    for (LevelElasticity* level : {&group.dram, &group.l2}) level->finding = finding_of(*level);
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
    result.turns = turns_of(facts, Taken::dram).size();
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
