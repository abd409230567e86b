// Applies the table of rules: the first whose figure reaches its threshold decides.
#include "analysis/explain/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/explain/program_findings.h"
#include "analysis/explain/verdict_rules.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// The memory, or the unit, with the longest roof time; with the next one where their intervals meet.
std::string longest_names(const StepGrounds& step, bool of_memory) {
    std::vector<RoofTime> roof_times = step.roof_times.all();
    std::erase_if(roof_times, [&](const RoofTime& roof_time) {
        return roof_time.is_memory() != of_memory || step.taken.exclude(roof_time);
    });
    if (roof_times.empty()) return "";
    const std::string longest(roof_times[0].name());
    return are_tied(roof_times) ? fmt::format("{} or {}", longest, roof_times[1].name()) : longest;
}

std::string level_of(const StepGrounds& step, const Rule& rule, const VerdictFacts& f) {
    if (&rule == &cause_rule()) return step.cause->level;
    if (rule.shown.id == "dram-taken") return std::string(name(Level::dram));
    if (rule.shown.id == "l2-taken") return std::string(name(Level::l2));
    if (rule.shown.id == "tensor-pipeline")
        return fmt::format("{} and {}", longest_names(step, false), unit::shared_memory);
    if (rule.shown.id == "busy-memory") return std::string(f.units.memory.name);
    if (rule.shown.id == "busy-unit") return std::string(f.units.pipe.name);
    if (rule.shown.id == "half-busy") return std::string(f.units.busiest().name);
    if (rule.shown.id == "time-steps") return std::string(time_steps_level);
    if (rule.shown.id == "no-bottleneck" && f.split && f.has_units && !f.units.known)
        return std::string(units_not_counted);
    if (rule.shown.id == "memory-roof" || rule.shown.id == "compute-roof")
        return longest_names(step, rule.shown.id == "memory-roof");
    return "";
}

std::string roof_time_evidence(const RoofTime& roof_time, double time_us) {
    std::string work = format_flop(roof_time.work), roof = format_flop_per_s(roof_time.roof.per_s);
    if (roof_time.is_memory()) {
        work = fmt::format("{} through {}", format_bytes(roof_time.work), roof_time.name());
        roof = format_bytes_per_s(roof_time.roof.per_s);
    } else if (!roof_time.unit.empty()) {
        work = fmt::format("{:.4g} million instructions of the {}", roof_time.work * 1e-6, roof_time.unit);
        roof = fmt::format("{:.4g} Ginst/s", roof_time.roof.per_s * 1e-9);
    }
    return fmt::format("{} ({}) would take {} of the time at the roof {} of {} ({})", work, name(roof_time.origin),
                       percent(roof_time.us / time_us), roof_time.roof.ceiling, roof, name(roof_time.roof.origin));
}

void add_evidence(std::vector<std::string>& evidence, const StepGrounds& step, const VerdictFacts& f,
                  const Roofs& roofs) {
    const double time_us = step.facts.time_us;
    for (const RoofTime& roof_time : step.roof_times.all())
        if (roof_time.work > 0) evidence.push_back(roof_time_evidence(roof_time, time_us));
    const auto add_share = [&](double share, std::string_view what) {
        if (std::abs(share) >= 0.01) evidence.push_back(fmt::format("{} {}", percent(share), what));
    };
    double clock = 0, extra = 0;
    if (const RoofTime* binding = step.roof_times.binding()) {
        const double slower =
            binding->run_us.value * binding->work / (binding->us * (binding->work + binding->extra_work));
        clock = binding->us * (slower - 1) / time_us;
        extra = (binding->run_us.value - binding->us * slower) / time_us;
    }
    add_share(std::max(clock, 0.0), "of the time more at that roof for the run's lower clock (derived)");
    add_share(std::max(extra, 0.0), "of the time at that roof for FLOPs beyond the model's (derived)");
    add_share(std::max(-extra, 0.0), "of the time less at that roof for FLOPs that ran on another unit (derived)");
    if (f.split) {
        add_share(
            f.idle_share,
            "of the time SMs were idle, without a warp; starting and ending kernels are not counted here (measured)");
        add_share(step.cycles.issuing, "of the time schedulers issued (measured)");
        add_share(f.waiting_share, "of the time SMs were stalled, with warps none of which could issue (measured)");
    }
    for (const auto& [unit, kind] :
         {std::pair{f.units.pipe, "pipes"}, std::pair{f.units.memory, "memories on the chip"}})
        if (!unit.name.empty())
            add_share(unit.share,
                      fmt::format("of the active cycles {} busy, the most of the {} that were counted (measured)",
                                  unit.name, kind));
    add_share(f.rest_share, "of the time is above the roof time and not split (no counters)");
    add_share(
        f.gap_share,
        "of the step and the gap before it, without what recording adds, is gaps, and starting and ending kernels (measured)");
    if (f.occupancy_pct) evidence.push_back(fmt::format("achieved occupancy {:.0f} % (measured)", *f.occupancy_pct));
    if (!roofs.unavailable().empty()) evidence.push_back(fmt::format("no roofs: {}", roofs.unavailable()));
    if (!f.compute_known) evidence.emplace_back("no roof of the unit that computes it");
    if (!f.memory_known) evidence.emplace_back("bytes or roof of a level of memory are not known");
}

/// What another rule would say within the intervals of the figures; empty where all of them agree on the bound.
std::string within_errors(const StepGrounds& step, const VerdictFacts& f, const Rule& rule) {
    if (bound_of(rule, f) == Bound::not_identifiable) return {};
    const Rule* other = nullptr;
    Bound other_bound = Bound::not_identifiable;
    double low = rule.figure(f), high = low;
    for (const VerdictFacts& variant : facts_within_errors(step, f)) {
        low = std::min(low, rule.figure(variant));
        high = std::max(high, rule.figure(variant));
        const Rule& decides = deciding_rule(variant);
        const Bound bound = bound_of(decides, variant);
        if (bound == bound_of(rule, f)) continue;
        other = &decides;
        other_bound = bound;
    }
    if (other == nullptr) return {};
    return fmt::format(
        "{} decides for {} at {:.0f} to {:.0f} % where {} is needed, and within such intervals {} would: {}",
        rule.shown.id, name(bound_of(rule, f)), 100 * low, 100 * high, percent(rule.shown.threshold), other->shown.id,
        name(other_bound));
}

Verdict judge_step(const StepGrounds& step, const Roofs& roofs, std::vector<std::string> told) {
    const VerdictFacts f = facts_of(step);
    Verdict verdict;
    verdict.subject = fmt::format("{} {}", step.facts.step->index, step.facts.step->layer);
    if (f.time_us <= 0) {
        verdict.rule = step_rules().back().shown.id;
        verdict.evidence = {"the step was not timed"};
        verdict.overturned_by = "a time of the step";
        for (const Bound bound : tested_bounds)
            verdict.hypotheses.push_back({bound, Finding::not_identifiable, "the step was not timed"});
        return verdict;
    }
    const Rule& decides = deciding_rule(f);
    const std::string other = within_errors(step, f, decides);
    // Figures that may fall on either side leave it to the largest cause, where that is certain.
    const bool by_cause = f.causes_known && f.cause_share >= cause_rule().shown.threshold;
    const Rule& rule = other.empty() ? decides : by_cause ? cause_rule() : error_rule();
    verdict.bound = bound_of(rule, f);
    verdict.rule = rule.shown.id;
    verdict.level = level_of(step, rule, f);
    verdict.margin = rule.figure(f) / rule.shown.threshold - 1;
    verdict.overturned_by = with_thresholds(rule.overturned_by, rule.shown.threshold);
    verdict.evidence = std::move(told);
    if (!other.empty()) verdict.evidence.insert(verdict.evidence.begin(), other);
    if (step.cause)
        verdict.evidence.push_back(fmt::format(
            "the largest cause is {} of the time: {}{}{}", percent(step.cause->us.value / f.time_us),
            name(step.cause->bound), step.cause->level.empty() ? "" : fmt::format(" ({})", step.cause->level),
            step.cause->is_clear || step.cause->second.empty()
                ? ""
                : fmt::format("; within their intervals it may be {}", step.cause->second)));
    add_evidence(verdict.evidence, step, f, roofs);
    verdict.hypotheses = test_hypotheses(f, rule);
    return verdict;
}

/// Time of steps by what binds them and at which level.
struct Tally {
    std::map<std::pair<Bound, std::string>, double> us;
    std::map<Bound, double> rejected_us;  ///< time of steps that reject a bound
    double total_us = 0;

    void add(const Verdict& verdict, double time_us) {
        if (time_us <= 0) return;
        us[{verdict.bound, verdict.level}] += time_us;
        total_us += time_us;
        for (const Hypothesis& hypothesis : verdict.hypotheses)
            if (hypothesis.finding == Finding::rejected) rejected_us[hypothesis.bound] += time_us;
    }

    /// The share of the bound that has most of the time of those that are known.
    double most_decided() const {
        std::map<Bound, double> sums;
        double most = 0;
        for (const auto& [key, time] : us)
            if (key.first != Bound::not_identifiable) most = std::max(most, sums[key.first] += time);
        return most / total_us;
    }

    /// The bound of most of the time and its share; 0 where two have equally much.
    std::pair<Bound, double> longest() const {
        std::map<Bound, double> sums;
        for (const auto& [key, time] : us) sums[key.first] += time;
        const auto most = std::ranges::max_element(sums, {}, [](const auto& bound_us) { return bound_us.second; });
        const bool is_alone = std::ranges::count(sums, most->second, [](const auto& sum) { return sum.second; }) == 1;
        return {most->first, is_alone ? most->second / total_us : 0};
    }
};

const VerdictRule& model_gaps = model_rules()[0];
const VerdictRule& model_cause = model_rules()[1];
const VerdictRule& majority = model_rules()[2];
const VerdictRule& no_majority = model_rules()[3];
const VerdictRule& model_host_wait = model_rules()[4];

void test_hypotheses(Verdict& verdict, const Tally& tally) {
    for (const Bound bound : tested_bounds) {
        const auto rejected = tally.rejected_us.find(bound);
        const double share = rejected == tally.rejected_us.end() ? 0 : rejected->second / tally.total_us;
        const Finding finding = bound == verdict.bound        ? Finding::confirmed
                                : share >= rejecting_majority ? Finding::rejected
                                                              : Finding::not_identifiable;
        verdict.hypotheses.push_back(
            {bound, finding, fmt::format("steps with {} of the time reject it", percent(share))});
    }
}

/// The bound of most of the time.
Verdict judge_many(const std::string& subject, const Tally& tally) {
    Verdict verdict;
    verdict.subject = subject;
    verdict.rule = no_majority.id;
    verdict.overturned_by = "one bound on more than half of the time";
    if (tally.total_us <= 0) {
        verdict.evidence = {"no step was timed"};
        return verdict;
    }
    std::vector<std::pair<double, std::pair<Bound, std::string>>> parts;
    for (const auto& [key, us] : tally.us) parts.emplace_back(us / tally.total_us, key);
    std::ranges::sort(parts, std::greater{});
    for (const auto& [share, key] : parts)
        verdict.evidence.push_back(
            fmt::format("{} of the steps' time is {}{}", percent(share),
                        key.first == Bound::not_identifiable ? "of unknown bottleneck" : name(key.first),
                        key.second.empty() ? "" : fmt::format(" ({})", key.second)));
    const auto [bound, share] = tally.longest();
    for (const auto& [part, key] : parts) {
        if (key.first == Bound::not_identifiable) verdict.undecided += part;
        verdict.lacks_units = verdict.lacks_units || key.second == units_not_counted;
    }
    verdict.may_be_one = verdict.undecided > 0 && tally.most_decided() + verdict.undecided >= majority.threshold;
    if (share >= majority.threshold) {
        verdict.bound = bound;
        verdict.rule = majority.id;
        verdict.margin = share / majority.threshold - 1;
        for (const auto& [part, key] : parts)
            if (key.first == bound && verdict.level.empty()) verdict.level = key.second;
        verdict.overturned_by = fmt::format("steps with more than {} of the time changing their verdict",
                                            percent(share - majority.threshold));
    }
    test_hypotheses(verdict, tally);
    return verdict;
}

/// Where no bound has most of the steps' time, the largest cause of the whole decides.
void judge_cause(Verdict& verdict, const Causes& causes) {
    if (verdict.bound != Bound::not_identifiable) return;
    const std::optional<LargestCause> largest = largest_cause(causes.whole);
    if (!largest || !largest->is_clear) return;
    const double share = largest->us.value / causes.whole.time_us;
    if (share < model_cause.threshold) return;
    verdict.bound = largest->bound;
    verdict.level = largest->level;
    verdict.rule = model_cause.id;
    verdict.margin = share / model_cause.threshold - 1;
    verdict.overturned_by = "that cause made smaller by a half, which does not shorten it";
    verdict.evidence.insert(
        verdict.evidence.begin(),
        fmt::format("{} of the end-to-end time has this cause, more than any other", percent(share)));
    for (Hypothesis& hypothesis : verdict.hypotheses)
        if (hypothesis.bound == largest->bound)
            hypothesis = {largest->bound, Finding::confirmed,
                          fmt::format("{}: {} where {} is needed", model_cause.id, percent(share),
                                      percent(model_cause.threshold))};
}

/// The verdict is that of a rule whose figure is `share` of the time, whatever binds most of the steps.
void overrule(Verdict& verdict, const VerdictRule& rule, double share) {
    verdict.bound = rule.bound;
    verdict.rule = rule.id;
    verdict.level.clear();
    verdict.margin = share / rule.threshold - 1;
    for (Hypothesis& hypothesis : verdict.hypotheses) {
        if (hypothesis.bound == rule.bound)
            hypothesis = {rule.bound, Finding::confirmed,
                          fmt::format("{}: {} where {} is needed", rule.id, percent(share), percent(rule.threshold))};
        else if (hypothesis.finding == Finding::confirmed)
            hypothesis.finding = Finding::not_identifiable;
    }
}

/// Gaps belong to no step: where they are long they bind the model, whatever binds its steps.
void judge_gaps(Verdict& verdict, const Grounds& grounds) {
    double gaps_us = 0;
    for (std::size_t i = 0; i < grounds.roof_times.size(); ++i)
        gaps_us += grounds.facts.steps[i].gaps_us() + grounds.cycles.steps[i].starts_us;
    gaps_us -= std::max(0.0, grounds.facts.records_us);  // some of what records add to a program may be gaps
    const double gaps = grounds.facts.end_to_end_us > 0 ? gaps_us / grounds.facts.end_to_end_us : 0;
    if (gaps < model_gaps.threshold) return;
    overrule(verdict, model_gaps, gaps);
    verdict.overturned_by = fmt::format("gaps under {} of the time: longer kernels, or launches ahead of the device",
                                        percent(model_gaps.threshold));
    verdict.evidence.insert(
        verdict.evidence.begin(),
        fmt::format("gaps, and starting and ending kernels, take {} of the end-to-end time (measured)", percent(gaps)));
}

/// A program that waits for its host does so whatever binds its kernels, of which the verdict then speaks apart.
void judge_host_wait(Verdicts& verdicts, const Verdict& by_steps, const PointFacts& facts) {
    const double share = facts.end_to_end_us > 0 ? host_wait_us(facts).low / facts.end_to_end_us : 0;
    if (share < model_host_wait.threshold) return;
    verdicts.kernels = by_steps;
    verdicts.model = by_steps;
    overrule(verdicts.model, model_host_wait, share);
    verdicts.model.overturned_by = fmt::format(
        "launches so far ahead of the GPU that it waits for under {} of the time", percent(model_host_wait.threshold));
    verdicts.model.evidence.insert(verdicts.model.evidence.begin(), host_wait_text(facts) + " (measured)");
}

}  // namespace

Verdict judge_together(const std::string& subject, const PointFacts& facts, const Verdicts& verdicts,
                       std::span<const std::size_t> steps) {
    Tally tally;
    for (const std::size_t step : steps) tally.add(verdicts.steps.at(step), facts.steps.at(step).time_us);
    return judge_many(subject, tally);
}

Verdicts judge(const Grounds& grounds) {
    Verdicts verdicts;
    Tally model;
    for (std::size_t i = 0; i < grounds.roof_times.size(); ++i) {
        const StepFacts& step = grounds.facts.steps[i];
        StepGrounds of_step{step, grounds.roof_times[i], grounds.units[i], grounds.cycles.steps[i]};
        if (grounds.interventions != nullptr) of_step.taken = grounds.interventions->steps[i];
        if (grounds.causes != nullptr && i < grounds.causes->steps.size())
            of_step.cause = largest_cause(grounds.causes->steps[i], of_step.units, of_step.cycles);
        verdicts.steps.push_back(judge_step(of_step, grounds.facts.roofs,
                                            grounds.told.empty() ? std::vector<std::string>() : grounds.told[i]));
        model.add(verdicts.steps.back(), step.time_us);
    }
    if (!grounds.roof_times.empty())
        for (const auto& [layer, steps] : grounds.facts.by_layer)
            verdicts.layers.push_back(judge_together(layer, grounds.facts, verdicts, steps));
    verdicts.model = judge_many("model", model);
    if (grounds.causes != nullptr) judge_cause(verdicts.model, *grounds.causes);
    const Verdict by_steps = verdicts.model;
    judge_gaps(verdicts.model, grounds);
    judge_host_wait(verdicts, by_steps, grounds.facts);
    return verdicts;
}

}  // namespace kbench
