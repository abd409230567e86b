// Ratios of times, by group of steps, against ratios of roofs.
#include "analysis/compare/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/explain/conclusions.h"
#include "analysis/explain/explain.h"
#include "analysis/facts/point_facts.h"
#include "analysis/result/merge.h"
#include "kbench/error.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// Fewer may all have met the same state of the machine.
constexpr std::size_t fewest_samples_of_a_range = 6;

/// Whether the larger of two positive values is at most `factor` times the other.
bool within(double one, double other, double factor) { return std::max(one, other) <= factor * std::min(one, other); }

bool fits(const Interval& times, std::optional<double> predicted) {
    return predicted && times.low / fit_tolerance <= *predicted && *predicted <= times.high * fit_tolerance;
}

std::optional<double> ratio_of(const std::optional<Roof>& over, const std::optional<Roof>& under) {
    return over && under && under->per_s > 0 ? std::optional(over->per_s / under->per_s) : std::nullopt;
}

bool has_verdicts(const Explanation& run) {
    return run.breakdown.roofs_unavailable.empty() && run.verdicts.steps.size() == run.roof_times.size();
}

/// `step`: one of the run's.
void add_step(GroupSide& side, const StepResult& step, const Explanation& run) {
    const auto i = static_cast<std::size_t>(&step - run.facts.point->steps.data());
    const StepFacts& facts = run.facts.steps[i];
    side.time_us += facts.device_us;
    ++side.steps;
    side.flops += step.cost.flops;
    const std::optional<double> counted = dram_traffic(facts.counters);
    side.dram_bytes += counted.value_or(step.cost.bytes());
    side.dram_origin = std::max(side.dram_origin, counted ? facts.dram_origin : Origin::derived);
    if (const RoofTime* unit = run.roof_times[i].at({})) side.compute_us += unit->us;
    if (has_verdicts(run))
        side.bound_us[static_cast<std::size_t>(run.verdicts.steps[i].bound)] += facts.device_us.value;
}

std::string group_name(const StepMatch& match, CompareBy by) {
    constexpr std::string (*name_of[])(const StepResult&) = {
        [](const StepResult& step) { return layer_group(step.layer); },
        [](const StepResult& step) { return step.op; },
        [](const StepResult& step) { return step.layer; },
    };
    std::vector<std::string> names;
    for (const auto* steps : {&match.a, &match.b})
        for (const StepResult* step : *steps) add_once(names, name_of[static_cast<std::size_t>(by)](*step));
    return joined(names, " + ");
}

/// Groups of the matches that both sides compute, the largest difference in time first.
std::vector<GroupComparison> sum_groups(const std::vector<StepMatch>& matches, CompareBy by, const Explanation& a,
                                        const Explanation& b) {
    std::vector<GroupComparison> groups;
    std::map<std::string, std::size_t> index;
    for (std::size_t m = 0; m < matches.size(); ++m) {
        if (matches[m].a.empty() || matches[m].b.empty()) continue;
        const std::string name = group_name(matches[m], by);
        const std::string key = by == CompareBy::step ? std::to_string(m) : name;
        const auto [found, is_new] = index.try_emplace(key, groups.size());
        if (is_new) groups.emplace_back().name = name;
        GroupComparison& group = groups[found->second];
        for (const StepResult* step : matches[m].a) add_step(group.a, *step, a);
        for (const StepResult* step : matches[m].b) add_step(group.b, *step, b);
    }
    for (GroupComparison& group : groups) group.ratio = quotient(group.b.time_us, group.a.time_us);
    const auto difference = [](const GroupComparison& g) { return std::abs(g.b.time_us.value - g.a.time_us.value); };
    std::ranges::stable_sort(groups, std::greater{}, difference);
    return groups;
}

void test_groups(std::vector<GroupComparison>& groups, std::optional<double> bandwidth) {
    for (GroupComparison& group : groups) {
        const bool computes = group.a.compute_us > 0 && group.b.compute_us > 0;
        group.test = test_ratio(group.ratio, bandwidth,
                                computes ? std::optional(group.b.compute_us / group.a.compute_us) : std::nullopt);
    }
}

/// What does not depend on the other run.
PointSide side_of(std::string letter, const Explanation& run) {
    const Point& point = *run.facts.point;
    const Roofs& roofs = run.facts.roofs;
    PointSide side{&point, std::move(letter), Interval::of(point.end_to_end->latency.summary_ms)};
    for (const StepResult& step : point.steps) add_step(side.all, step, run);
    side.roofs = {roofs.bandwidth(Level::dram), roofs.matrix(point.precision()), roofs.plain(point.precision()),
                  roofs.unavailable()};
    if (has_verdicts(run)) side.verdict = run.verdicts.model;
    side.bandwidth = bandwidth_bound(run);
    return side;
}

/// Shares of the side's time by fit.
void share_fits(PointSide& side, const std::vector<GroupComparison>& groups, GroupSide GroupComparison::*own) {
    double all_us = 0;
    for (const GroupComparison& group : groups) {
        all_us += (group.*own).time_us.value;
        side.fit[static_cast<std::size_t>(group.test.fit)] += (group.*own).time_us.value;
    }
    for (double& share : side.fit) share = all_us > 0 ? share / all_us : 0;
}

PointComparison compare_points(const Explanation& a, const Explanation& b, const std::string& b_letter,
                               const CompareOptions& options) {
    PointComparison point{side_of(run_letter(0), a), side_of(b_letter, b)};
    point.title = match_title(*point.a.point);
    point.ratio = quotient(point.b.ms, point.a.ms);
    point.steps_ratio = quotient(point.b.all.time_us, point.a.all.time_us);
    point.has_interval = point.a.summary().has_interval() && point.b.summary().has_interval();
    point.naive = test_ratio(point.ratio, ratio_of(point.a.roofs.bandwidth, point.b.roofs.bandwidth),
                             ratio_of(point.a.roofs.matrix, point.b.roofs.matrix));
    point.impossible = a.impossible;
    add_once(point.impossible, b.impossible);
    for (const auto& [side, run] : {std::pair{&point.a, &a}, {&point.b, &b}})
        for (const std::string& lacks : run->missing)
            point.missing.push_back(fmt::format("{}: {}", side->letter, lacks));
    if (!point.concludes()) point.naive.fit = Fit::untested;
    point.same_roofs = point.naive.bandwidth && point.naive.flops &&
                       within(*point.naive.bandwidth, 1, same_roofs_tolerance) &&
                       within(*point.naive.flops, 1, same_roofs_tolerance);

    const std::vector<StepMatch> matches = match_steps(*point.a.point, *point.b.point);
    for (const StepMatch& match : matches) {
        if (!match.a.empty() && !match.b.empty()) continue;
        for (const StepResult* step : match.a) point.a.unmatched_us += device_interval(*step).value;
        for (const StepResult* step : match.b) point.b.unmatched_us += device_interval(*step).value;
    }
    point.groups = sum_groups(matches, options.by, a, b);
    std::vector<GroupComparison> layers = sum_groups(matches, CompareBy::layer, a, b);
    if (!point.same_roofs && point.concludes()) {
        test_groups(point.groups, point.naive.bandwidth);
        test_groups(layers, point.naive.bandwidth);
    }
    share_fits(point.a, layers, &GroupComparison::a);
    share_fits(point.b, layers, &GroupComparison::b);
    return point;
}

/// What two single runs can say of a change: their own intervals, or what runs differ by where that is more.
void judge_point(PointComparison& point, double limit) {
    const std::size_t samples = std::min(point.a.summary().n, point.b.summary().n);
    Interval ratio = point.ratio;
    if (point.spread) {
        const double least = point.spread->least_difference();
        ratio.low = std::min(ratio.low, ratio.value * std::exp(-least));
        ratio.high = std::max(ratio.high, ratio.value * std::exp(least));
    }
    const bool is_starved = starved(point.a.point->conditions) || starved(point.b.point->conditions);
    const bool is_known = samples >= fewest_samples_of_a_range && point.impossible.empty() && !is_starved;
    point.change = is_known ? judge_change(ratio, limit) : Change::cannot_tell;
}

bool is_other_card(const Environment& a, const Environment& b) {
    return a.gpu && b.gpu && a.gpu->name == b.gpu->name && a.gpu->uuid != b.gpu->uuid;
}

/// The finished points of one run that the other did not measure.
void note_left_out(std::vector<std::string>& notes, const NamedResult& run, const NamedResult& other,
                   const std::vector<const Point*>& compared) {
    for (const Point& point : run.result.points)
        if (point.status == PointStatus::done && !contains(compared, &point))
            notes.push_back(fmt::format("{}: in {}, not in {}", match_title(point), run.name, other.name));
}

PairComparison compare_pair(std::span<const NamedResult> runs, std::size_t b, const CompareOptions& options) {
    PairComparison pair;
    pair.b = b;
    std::vector<const Point*> of_a, of_b;
    for (const auto& [mine, theirs] : match_points(runs[0], runs[b])) {
        PointComparison& point = pair.points.emplace_back(
            compare_points(explain(runs[0].result, *mine), explain(runs[b].result, *theirs), run_letter(b), options));
        point.spread = run_spread(runs, runs[0], runs[b], *mine);
        point.other_card = is_other_card(runs[0].result.environment, runs[b].result.environment);
        if (options.fail_above) judge_point(point, *options.fail_above);
        if (point.concludes())
            point.evidence = evidence_of(point);
        else if (point.impossible.empty())
            point.evidence = {{"bandwidth?", no_conclusion(point.missing)}};
        of_a.push_back(mine);
        of_b.push_back(theirs);
    }
    note_left_out(pair.left_out, runs[0], runs[b], of_a);
    note_left_out(pair.left_out, runs[b], runs[0], of_b);
    return pair;
}

std::string regression_line(const PointComparison& point, const std::string& name, double limit) {
    return fmt::format("{}: {} takes {:.1f} % longer [{:.1f}, {:.1f}], more than {:g} %", point.title, name,
                       100 * (point.ratio.value - 1), 100 * (point.ratio.low - 1), 100 * (point.ratio.high - 1),
                       100 * limit);
}

/// What the first run measured and the later one did not, or failed at: a change that makes nothing faster.
void add_unmeasured(Comparison& comparison, const NamedResult& first, const NamedResult& later) {
    for (const Point& point : first.result.points) {
        if (point.status != PointStatus::done || !point.end_to_end) continue;
        const auto found =
            std::ranges::find_if(later.result.points, [&](const Point& other) { return is_match(point, other); });
        if (found == later.result.points.end())
            comparison.regressions.push_back(fmt::format("{}: {} has no such point", match_title(point), later.name));
        else if (found->status != PointStatus::done || !found->end_to_end)
            comparison.regressions.push_back(
                fmt::format("{}: {} in {}: {}", match_title(point), name(found->status), later.name, found->reason));
    }
}

}  // namespace

RatioTest test_ratio(const Interval& times, std::optional<double> bandwidth, std::optional<double> flops) {
    RatioTest test{bandwidth, flops, fits(times, bandwidth), fits(times, flops), Fit::untested};
    if (!(times.value > 0) || !bandwidth) return test;
    if (!test.fits_bandwidth && !test.fits_flops)
        test.fit = Fit::neither;
    else if ((test.fits_bandwidth && test.fits_flops) || (flops && within(*bandwidth, *flops, fit_tolerance)))
        test.fit = Fit::either;
    else
        test.fit = test.fits_bandwidth ? Fit::bandwidth : Fit::flops;
    return test;
}

Change judge_change(const Interval& ratio, double limit) {
    if (ratio.low > 1 + limit) return Change::regression;
    if (ratio.high > 1 + limit) return Change::cannot_tell;
    return ratio.high < 1 ? Change::improvement : Change::within_limit;
}

Interval GroupSide::tflop_per_s() const { return quotient(Interval::exactly(flops * 1e-6), time_us); }

Interval GroupSide::dram_gb_per_s() const { return quotient(Interval::exactly(dram_bytes * 1e-3), time_us); }

std::optional<Bound> GroupSide::bound() const {
    const auto most = std::ranges::max_element(bound_us);
    return *most > 0 ? std::optional(static_cast<Bound>(most - bound_us.begin())) : std::nullopt;
}

double GroupSide::bound_share(Bound bound) const {
    return time_us.value > 0 ? bound_us[static_cast<std::size_t>(bound)] / time_us.value : 0;
}

std::string run_letter(std::size_t run) {
    return run < 26 ? std::string(1, static_cast<char>('A' + run)) : fmt::format("#{}", run + 1);
}

Comparison compare(std::span<const NamedResult> runs, const CompareOptions& options) {
    Comparison comparison;
    comparison.options = options;
    std::vector<std::string> names;
    for (const NamedResult& run : runs) {
        comparison.runs.push_back(&run);
        names.push_back(run.name);
    }
    for (const auto& [name, price] : options.prices)
        if (!contains(names, name))
            throw UsageError(
                fmt::format("--price: no result is called '{}'; they are {}", name, fmt::join(names, ", ")));
    for (std::size_t b = 1; b < runs.size(); ++b) {
        comparison.pairs.push_back(compare_pair(runs, b, options));
        for (const PointComparison& point : comparison.pairs.back().points)
            if (point.change == Change::regression)
                comparison.regressions.push_back(regression_line(point, runs[b].name, *options.fail_above));
    }
    if (options.fail_above)
        for (const PairComparison& pair : comparison.pairs) add_unmeasured(comparison, runs[0], runs[pair.b]);
    comparison.values = value_tables(runs, options.prices);
    return comparison;
}

}  // namespace kbench
