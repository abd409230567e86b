// What memory bandwidth has to do with the time, and the time by bound.
#include "analysis/explain/in_short.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/explain/program_findings.h"
#include "analysis/explain/serial_chain.h"
#include "analysis/explain/units.h"
#include "analysis/explain/verdict_rules.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// Under this share of the time DRAM's traffic cannot be what binds the whole: half of what the rule of a roof asks
/// for. Steps that it may bind each by itself must be few as well.
constexpr double small_dram_share = 0.30, few_steps_share = 0.20;
/// Bounds with less of the time are not worth a word.
constexpr double noteworthy_bound = 0.05;
/// Less than this prints as 0 %.
constexpr double least_percent = 0.005;
/// From here on no other bound can have as much.
constexpr double most_of_the_time = 0.5;

/// The part of the steps' time whose DRAM roof time may reach the share from which on a step is bound by it.
double may_be_bound_by_dram(const Explanation& explanation) {
    double steps_us = 0, may_us = 0;
    for (std::size_t i = 0; i < explanation.roof_times.size(); ++i) {
        const double time_us = explanation.facts.steps[i].time_us;
        steps_us += time_us;
        const RoofTime* dram = explanation.roof_times[i].at(Level::dram);
        if (explanation.facts.unknown_work_us > 0 && explanation.facts.steps[i].has_unknown_work())
            may_us += time_us;  // a program's op of unknown shape
        else if (dram != nullptr &&
                 dram->run_us.high * (dram->origin == Origin::measured ? 1 : uncounted_bytes_factor) >=
                     bound_share * time_us)
            may_us += time_us;
    }
    return steps_us > 0 ? may_us / steps_us : 1;
}

/// DRAM's traffic over its bandwidth, of the time.
struct DramShare {
    double share = 0;
    double most = 0;  ///< what was not counted may be more
    Origin origin = Origin::measured;
    bool is_part = false;  ///< some kernels' bytes are not known
};
std::optional<DramShare> dram_share(const Explanation& explanation) {
    const Attribution& attribution = explanation.attribution;
    const auto dram = std::ranges::find(attribution.levels, Level::dram, &LevelTraffic::level);
    if (!attribution.unavailable.empty() || dram == attribution.levels.end()) return std::nullopt;
    const double share = dram->ms * 1e3 / explanation.breakdown.end_to_end_us;
    const double unknown = explanation.facts.unknown_work_us / explanation.breakdown.end_to_end_us;
    if (unknown > 0 && share <= 0) return std::nullopt;
    return DramShare{share, share * (dram->origin == Origin::measured ? 1 : uncounted_bytes_factor) + unknown,
                     dram->origin, unknown > 0};
}

bool is_too_little(const Explanation& explanation, const DramShare& dram) {
    return explanation.verdicts.model.bound != Bound::bandwidth && dram.most < small_dram_share &&
           may_be_bound_by_dram(explanation) < few_steps_share;
}

std::string traffic_text(const DramShare& dram) {
    return fmt::format("DRAM traffic ({}) would take {}{} of the time at full bandwidth", name(dram.origin),
                       percent(dram.share), dram.is_part ? " or more" : "");
}

/// What happened as a thief took DRAM's bandwidth from the work, which had fewer SMs or threads then; empty where none
/// did.
std::string taken_text(const BandwidthElasticity& theft) {
    if (!theft.model || theft.model->dram.effects.empty()) return "";
    const TheftEffect& most = theft.model->dram.effects.back();
    const double grew = most.ratio.value - 1;
    return fmt::format("with {} less, {} {} took {:.1f} % {}", percent(most.share), theft.multiprocessors,
                       name(theft.workers), 100 * std::abs(grew), grew < 0 ? "shorter" : "longer");
}

/// Whether time grew as DRAM's bandwidth was taken away.
bool may_be_dram(Influence dram) { return dram == Influence::binds || dram == Influence::partly; }

/// Whether a memory is among what may be the bottleneck where none is known.
bool is_memory_open(const Explanation& explanation) {
    constexpr std::size_t most = 3;
    return is_beyond_telling(explanation.verdicts.model) &&
           std::ranges::any_of(likeliest(explanation.suspects, most), [](const Suspect& suspect) {
               return suspect.name == "DRAM" || suspect.name == "L2" || suspect.name == "shared memory";
           });
}

/// Parts of the steps' time by bound, in the order of the enumeration.
std::array<double, std::size(bound_names)> time_by_bound(const Explanation& explanation) {
    std::array<double, std::size(bound_names)> us{};
    double all_us = 0;
    for (std::size_t i = 0; i < explanation.verdicts.steps.size(); ++i) {
        const double step_us = explanation.facts.steps[i].time_us;
        us[static_cast<std::size_t>(explanation.verdicts.steps[i].bound)] += step_us;
        all_us += step_us;
    }
    if (all_us > 0)
        for (double& part : us) part /= all_us;
    return us;
}

/// The largest part that a bound besides bandwidth has.
double largest_of_others(const std::array<double, std::size(bound_names)>& parts) {
    double largest = 0;
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (static_cast<Bound>(i) != Bound::bandwidth && static_cast<Bound>(i) != Bound::not_identifiable)
            largest = std::max(largest, parts[i]);
    return largest;
}

/// Whether most of the time is time steps': each waits for the one before it, whatever else there is to run.
bool is_mostly_serial(const TimeBreakdown& breakdown, const std::vector<SerialChain>& groups) {
    const std::optional<SerialChain> all = together(groups);
    return all && all->time_us > 0.5 * breakdown.end_to_end_us;
}

}  // namespace

std::string dram_traffic_text(const Explanation& explanation) {
    const std::optional<DramShare> dram = dram_share(explanation);
    if (!dram) return "";
    return fmt::format("its {}{}", traffic_text(*dram),
                       is_too_little(explanation, *dram) ? ", so DRAM is not the bottleneck" : "");
}

bool is_beyond_telling(const Verdict& verdict) {
    return verdict.bound == Bound::not_identifiable && verdict.may_be_one;
}

std::string reason_text(const Verdict& verdict) {
    if (verdict.rule != majority_rule().id) return verdict.evidence.empty() ? verdict.rule : verdict.evidence.front();
    return fmt::format("{} of the steps' time is {}", percent((1 + verdict.margin) * majority_rule().threshold),
                       name(verdict.bound));
}

std::string suspects_text(const Suspects& suspects) {
    constexpr std::size_t most = 3;
    const auto found = likeliest(suspects, most);
    const std::string texts = joined(found, ", ", [](const Suspect& suspect) {
        return fmt::format("{} (at most {} ms)", suspect.name, significant(suspect.most_us * 1e-3));
    });
    return found.empty() ? "no resource that was measured is the bottleneck"
                         : (found.size() == 1 ? "the bottleneck may be " : "the bottleneck is one of ") + texts;
}

std::string next_experiment(const Explanation& explanation) {
    const Point& point = *explanation.facts.point;
    std::vector<std::string_view> next;
    if (explanation.verdicts.model.lacks_units || (point.program && point.counters.metrics.empty()))
        next.emplace_back("--counters core,tensor,pipes, which counts units that may be it");
    if (point.program) return joined(next, ", ");  // nothing can be taken away from it, and its sizes are its own
    if (explanation.causes.whole.unfitted_us > 0.5 * explanation.causes.whole.time_us)
        next.emplace_back("times at other sizes");
    if (point.backend() == "cuda" && explanation.interventions.model.sms == Influence::unknown)
        next.emplace_back("the same on fewer SMs");
    if (explanation.interventions.model.dram == Influence::unknown)
        next.emplace_back("the same while DRAM's bandwidth is taken away");
    return joined(next, ", ");
}

std::string shouted(BandwidthAnswer answer) {
    std::string text{name(answer)};
    std::ranges::transform(text, text.begin(), [](char c) { return 'a' <= c && c <= 'z' ? c - 'a' + 'A' : c; });
    return text;
}

BandwidthBound bandwidth_bound(const Explanation& explanation) {
    BandwidthBound found;
    if (!explanation.concludes()) {
        found.why = "these figures carry no conclusion";
        return found;
    }
    const Verdict& verdict = explanation.verdicts.model;
    const std::optional<DramShare> dram = dram_share(explanation);
    const Influence taken = explanation.interventions.model.dram;
    const bool is_by_memory = verdict.bound == Bound::bandwidth;
    const auto parts = time_by_bound(explanation);
    const double by_memory = parts[static_cast<std::size_t>(Bound::bandwidth)];
    std::vector<std::string> why;
    if (is_by_memory)
        why.push_back(reason_text(verdict) + (verdict.level.empty() ? "" : fmt::format(" (mostly {})", verdict.level)));
    else if (by_memory >= most_of_the_time)
        why.push_back(fmt::format("{} of the steps' time is {}", percent(by_memory), name(Bound::bandwidth)));
    const bool is_known = verdict.bound != Bound::not_identifiable;
    // Where nothing decides the whole, steps of which nothing is known may all be bandwidth-bound.
    const double at_most = by_memory + (is_known ? 0 : parts[static_cast<std::size_t>(Bound::not_identifiable)]);
    const bool is_less = !explanation.verdicts.steps.empty() && at_most < most_of_the_time &&
                         (is_known || at_most < largest_of_others(parts));
    const bool is_ruled_out = is_less || (!is_known && !is_memory_open(explanation) &&
                                          ((dram && is_too_little(explanation, *dram)) || taken == Influence::none));
    if (!is_known && is_less)
        why.push_back(fmt::format("at most {} of the steps' time is {}", percent(at_most), name(Bound::bandwidth)));
    if (is_by_memory && !(taken == Influence::none && verdict.level == name(Level::dram)))
        found.answer = BandwidthAnswer::yes;
    else if (!is_by_memory && is_ruled_out && !may_be_dram(taken))
        found.answer = BandwidthAnswer::no;
    if (dram && !(dram->is_part && found.answer == BandwidthAnswer::no)) why.push_back(traffic_text(*dram));
    if (std::string text = taken_text(explanation.theft); !text.empty()) why.push_back(std::move(text));
    if (const double may = may_be_bound_by_dram(explanation);
        found.answer == BandwidthAnswer::cannot_tell && dram && may >= least_percent)
        why.push_back(fmt::format("it may bind steps with {} of the time", percent(may)));
    if (why.empty())
        why.push_back(found.answer == BandwidthAnswer::no               ? fmt::format("it is {}", name(verdict.bound))
                      : explanation.breakdown.roofs_unavailable.empty() ? "DRAM's traffic is not known"
                                                                        : explanation.breakdown.roofs_unavailable);
    found.why = joined(why, "; ");
    return found;
}

std::string binding_text(const Explanation& explanation) {
    const Verdict& verdict = explanation.verdicts.model;
    if (explanation.verdicts.steps.empty()) return "";
    const auto parts = time_by_bound(explanation);
    std::vector<std::pair<double, std::string>> others;
    for (std::size_t i = 0; i < parts.size(); ++i)
        if (parts[i] >= noteworthy_bound && static_cast<Bound>(i) != verdict.bound)
            others.emplace_back(parts[i], fmt::format("{} in {}", name(static_cast<Bound>(i)), percent(parts[i])));
    std::ranges::stable_sort(others, std::greater{}, [](const auto& other) { return other.first; });
    const std::string rest = joined(others, ", ", [](const auto& other) { return other.second; });
    const std::string steps = "step by step " + rest;
    if (is_beyond_telling(verdict)) {
        const std::string unknown = fmt::format("for {} of the steps' time {}", percent(verdict.undecided),
                                                suspects_text(explanation.suspects));
        if (!others.empty() && others.front().first > verdict.undecided)
            return fmt::format("no single one for certain: {}; {}", steps, unknown);
        return rest.empty() ? unknown : fmt::format("{}; {}", unknown, steps);
    }
    if (verdict.bound == Bound::not_identifiable) return "no single one: " + (rest.empty() ? "unknown" : steps);
    const std::string level = verdict.level.empty() ? "" : fmt::format(" ({})", verdict.level);
    const std::string share = percent(parts[static_cast<std::size_t>(verdict.bound)]);
    const bool by_majority = verdict.rule == majority_rule().id;
    if (by_majority)
        return fmt::format("{}{} in steps with {} of the time{}{}", name(verdict.bound), level, share,
                           rest.empty() ? "" : ", ", rest);
    const std::string own = fmt::format("{}{}: {}", name(verdict.bound), level, reason_text(verdict));
    return rest.empty() ? own : fmt::format("{}; step by step {} in {}, {}", own, name(verdict.bound), share, rest);
}

std::string what_would_help(const Explanation& explanation) {
    const Verdict& verdict = explanation.verdicts.model;
    const bool on_gpu = explanation.facts.point->backend() == "cuda";
    switch (verdict.bound) {
        case Bound::bandwidth:
            return "more bandwidth at that level, fewer bytes (fusing, narrower types) or a larger cache would shorten it";
        case Bound::compute:
            if (is_unit(verdict.level))
                return "fewer instructions of that kind for the same work would shorten it, more memory bandwidth would not";
            return fmt::format(
                "a faster unit (a narrower precision{}, {}) would shorten it, more memory bandwidth would not",
                explanation.interventions.model.sms == Influence::none ? ""
                : on_gpu                                               ? ", more SMs"
                                                                       : ", more cores",
                is_at_power_limit(explanation.facts.point->conditions) ? "a higher power limit" : "a higher clock");
        case Bound::latency:
            if (verdict.level == fixed_time_level)
                return "fewer, larger kernels (fusing, a larger batch) or shorter epilogues would shorten it, more bandwidth or more FLOP/s would not";
            if (verdict.level == time_steps_level)
                return "neither more bandwidth nor more FLOP/s would shorten it much, and more sequences at once would take little longer; quicker exchanges between time steps, or fewer of them, would shorten it";
            return "neither more bandwidth nor more FLOP/s a clock would shorten it much; more work in flight (a larger batch) or a higher clock would";
        case Bound::launch:
            if (explanation.verdicts.kernels)
                return quicker_launches(*explanation.facts.point->program) + " would shorten it, another GPU hardly";
            return "fewer and longer kernels (fusing, a larger batch) would shorten it, other hardware hardly";
        case Bound::occupancy:
            if (verdict.level == last_wave_level)
                return "tiles that fill the last wave (persistent or stream-k tiles, a larger batch) would shorten it";
            if (is_mostly_serial(explanation.breakdown, explanation.time_steps))
                return "these figures do not tell whether less work in a time step or a quicker exchange between them would shorten it, as the two overlap";
            return "more blocks or more warps an SM (other tiles, a larger batch) would shorten it before other hardware does";
        case Bound::not_identifiable: break;
    }
    const std::string next = next_experiment(explanation);
    return is_beyond_telling(verdict)
               ? next.empty() ? std::string("what would shorten it most is the first of these that gives way")
                              : fmt::format("the next experiment is {}", next)
               : "with no single bottleneck, no one change of the machine shortens it in proportion";
}

}  // namespace kbench
