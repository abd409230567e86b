// The parts of an explanation, and the three sentences that come first.
#include "analysis/explain/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>

#include "analysis/explain/conclusions.h"
#include "analysis/explain/cycles.h"
#include "analysis/explain/impossible.h"
#include "analysis/explain/in_short.h"
#include "analysis/explain/judge.h"
#include "analysis/explain/point_breach.h"
#include "analysis/explain/program_findings.h"
#include "analysis/explain/roof_times.h"
#include "analysis/explain/units.h"
#include "analysis/explain/verdict_rules.h"
#include "analysis/machine/usable_roofs.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// "model at batch 1 takes 4.06 ms on this GPU".
std::string takes_text(const Point& point, const TimeBreakdown& breakdown) {
    return fmt::format("{} takes {} on this {}", sentence_name(point), format_ms(breakdown.end_to_end_us * 1e-3),
                       point.backend() == "cuda" ? "GPU" : "CPU");
}

/// The parts of a program's time are of another run than that time: only how far their sums lie apart is evidence.
std::string program_sentence(const Point& point, const TimeBreakdown& breakdown) {
    const double sum_us = breakdown.end_to_end_us - breakdown.total[Line::records] - breakdown.total[Line::residual];
    const double more = sum_us / breakdown.end_to_end_us - 1;
    return fmt::format(
        "{}; its kernels, copies and idle times add up to {} in the run with records, {:.1f} % {}{}.",
        takes_text(point, breakdown), format_ms(sum_us * 1e-3), 100 * std::abs(more), more < 0 ? "less" : "more",
        std::abs(more) <= closing_tolerance ? "" : fmt::format(", where {} is the goal", percent(closing_tolerance)));
}

/// How long it takes, and whether the account of it closes.
std::string first_sentence(const Point& point, const TimeBreakdown& breakdown) {
    if (point.program) return program_sentence(point, breakdown);
    return fmt::format("{}; its {} add up to that within {:.1f} %{}.", takes_text(point, breakdown),
                       point.backend() == "cuda" ? "steps, gaps and the correction for recording" : "steps",
                       breakdown.unexplained_share() * 100,
                       breakdown.closes() ? "" : fmt::format(", where {} is the goal", percent(closing_tolerance)));
}

std::string level_text(const Verdict& verdict) {
    return verdict.level.empty() ? "" : fmt::format(" ({})", verdict.level);
}

/// "Of 4.00 ms, 1.70 ms are work at the roof of fp16_tensor, 0.800 ms fixed time of 182 steps (fewer kernels), ...;
/// 0.200 ms are not explained." Empty where no step has a fit.
std::string causes_sentence(const Explanation& explanation) {
    const CauseGroup& whole = explanation.causes.whole;
    if (whole.time_us <= 0 || !explanation.causes.has_fits) return "";
    constexpr double noteworthy = 0.02;  // a part of the time
    struct Part {
        double us;
        std::string text;
    };
    const int decimals = decimals_for(whole.time_us * 1e-3);
    const auto ms = [decimals](double us) { return fmt::format("{:.{}f}", us * 1e-3, decimals); };
    std::vector<Part> parts;
    for (const CausePart& roof : whole.at_roofs) {
        // Its clock and extra work are lines of their own.
        double useful_us = 0;
        for (const StepCauses& step : explanation.causes.steps)
            if (step.roof == roof.name) useful_us += step.lines[Cause::useful].value;
        parts.push_back({useful_us, fmt::format("{} ms are work at the roof of {}", ms(useful_us), roof.name)});
    }
    for (std::size_t i = 0; i < cause_count; ++i) {
        const Cause cause = cause_at(i);
        if (cause == Cause::useful || cause == Cause::unexplained) continue;
        const double us = whole.lines.us[i].value;
        const std::string change = whole.change(cause);
        parts.push_back(
            {us,
             fmt::format("{} ms {}{}{}", ms(us), info(cause).name,
                         cause == Cause::fixed ? " of " + plural(static_cast<std::int64_t>(whole.steps), "step") : "",
                         change.empty() ? "" : fmt::format(" ({})", change))});
    }
    std::erase_if(parts, [&](const Part& part) { return part.us < noteworthy * whole.time_us; });
    std::ranges::stable_sort(parts, std::greater{}, &Part::us);
    constexpr double well_beyond = 1.5;  // misfits that do not cancel are what is left, but for rounding
    const double left_us = whole.lines[Cause::unexplained].value;
    std::string text = fmt::format("Of {} ms, {}; {} ms {}", ms(whole.time_us), joined(parts, ", ", &Part::text),
                                   ms(std::abs(left_us)), left_us < 0 ? "too many are explained" : "are not explained");
    if (whole.misfit_us > well_beyond * std::abs(left_us))
        text += fmt::format(", in which misfits of {} ms cancel", ms(whole.misfit_us));
    if (!whole.is_explanation()) text += fmt::format(", where under {} is the goal", percent(explanation_tolerance));
    return text + ".";
}

/// Steps with less of the time are not worth a remark.
constexpr double noteworthy_share = 0.20;

/// Steps whose unit has no roof, as a remark on what the work takes at the roofs; empty where they are few.
std::string without_roof(const Result& result, const Explanation& explanation) {
    if (const double unknown_us = explanation.facts.unknown_work_us; unknown_us > 0)
        return fmt::format(" or more (of kernels with {} of it the FLOPs and bytes are not known)",
                           percent(unknown_us / explanation.breakdown.end_to_end_us));
    double us = 0;
    for (std::size_t i = 0; i < explanation.roof_times.size(); ++i)
        if (!explanation.roof_times[i].compute_known) us += explanation.facts.steps[i].time_us;
    const double share = us / explanation.breakdown.end_to_end_us;
    if (!(share >= noteworthy_share)) return "";
    const std::string why = result.environment.gpu ? no_tensor_roof(*result.environment.gpu) : "";
    return fmt::format(" (the units of steps with {} of it have no roof{}{})", percent(share), why.empty() ? "" : ": ",
                       why);
}

/// The bottleneck, and how much of the time the roof times are.
std::string second_sentence(const Result& result, const Explanation& explanation) {
    const TimeBreakdown& breakdown = explanation.breakdown;
    const std::optional<Verdict>& kernels = explanation.verdicts.kernels;
    const Verdict& verdict = kernels ? *kernels : explanation.verdicts.model;
    if (!breakdown.roofs_unavailable.empty())
        return fmt::format("The bottleneck is unknown: {}.", breakdown.roofs_unavailable);
    const bool knows_work = breakdown.roof_times.useful_us > 0 || explanation.facts.unknown_work_us <= 0;
    std::string roof_time = knows_work
                                ? fmt::format("at the roofs the work would take {} of the time",
                                              percent(breakdown.roof_times.useful_us / breakdown.end_to_end_us)) +
                                      without_roof(result, explanation)
                                : "what the work would take at the roofs is not known, as its shapes are not";
    constexpr double many_tied = 0.20;  // a part of the time
    if (const double tied = breakdown.roof_times.tied_us / breakdown.end_to_end_us;
        verdict.bound == Bound::not_identifiable && tied >= many_tied)
        roof_time += fmt::format(
            ", and in steps with {} of the time the two longest roof times are too close to tell apart", percent(tied));
    const std::string traffic = dram_traffic_text(explanation);
    const std::string dram = traffic.empty() ? "" : "; " + traffic;
    std::string rejected = joined(verdict.hypotheses, ", ", [](const Hypothesis& hypothesis) {
        return hypothesis.finding == Finding::rejected ? fmt::format("not {}", name(hypothesis.bound)) : "";
    });
    if (!rejected.empty()) rejected.insert(0, "; ");
    if (is_beyond_telling(verdict))
        return fmt::format("For {} of the steps' time {}{}: {}{}.", percent(verdict.undecided),
                           suspects_text(explanation.suspects), rejected, roof_time, dram);
    if (verdict.bound == Bound::not_identifiable)
        return fmt::format("There is no single bottleneck ({}{}): {}{}.", reason_text(verdict), rejected, roof_time,
                           dram);
    return fmt::format("{} {}{}{}: {}; {}{}.", kernels ? "Its kernels are" : "It is", name(verdict.bound),
                       level_text(verdict), rejected, reason_text(verdict), roof_time, dram);
}

/// What time steps have to do with it; empty where they are few.
std::string serial_chain_sentence(const TimeBreakdown& breakdown, const std::vector<SerialChain>& groups) {
    const std::optional<SerialChain> all = together(groups);
    if (!all || all->time_us < noteworthy_share * breakdown.end_to_end_us) return "";
    std::string text = fmt::format(
        "{:.0f} time steps, a serial chain in which each waits for the one before it, take {} of the time, {} us each",
        all->time_steps, percent(all->time_us / breakdown.end_to_end_us), significant(all->us()));
    if (all->together_us > 0)
        text += fmt::format("; all roofs{}, one after another, would take {} us of that",
                            all->is_complete ? "" : " that are known", significant(all->together_us_of_one(), 2));
    if (all->exchange)
        text += fmt::format(", and {} {} us",
                            all->exchange->is_bound() ? "as many empty kernels" : "one barrier among all SMs",
                            significant(all->exchange->us, 2));
    return text + ".";
}

/// " (waiting for long_scoreboard in 27 %, for barrier in 8 to 12 %)": what warps waited for, where that was sampled or
/// counted.
std::string waits_text(const CycleGroup& all) {
    constexpr double noteworthy = 0.05;  // a part of the time
    constexpr std::size_t most = 2;
    std::vector<std::string> waits;
    for (const LostCycles& lost : all.lost) {
        if (waits.size() == most || lost.best() < noteworthy * all.time_us) break;
        waits.push_back(fmt::format("{} in {}", lost.reason,
                                    lost.sampled ? percent(*lost.sampled / all.time_us)
                                                 : fmt::format("{:.0f} to {}", 100 * lost.low / all.time_us,
                                                               percent(lost.high / all.time_us))));
    }
    return waits.empty() ? "" : fmt::format(" (waiting for {})", joined(waits, ", for "));
}

/// What SMs did, as counted, and what would change it.
std::string third_sentence(const Explanation& explanation) {
    const TimeBreakdown& breakdown = explanation.breakdown;
    const CycleAccounts& cycles = explanation.cycles;
    if (!breakdown.roofs_unavailable.empty())
        return "What would shorten it is unknown, too; measured ceilings (kbench ceilings) would tell.";
    std::string change = what_would_help(explanation);
    if (!cycles.unavailable.empty()) {
        if (explanation.verdicts.kernels) return "";  // the first sentence has said it
        change.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(change.front())));
        return change + ".";
    }
    const CycleGroup& all = cycles.total;
    return fmt::format("SMs during kernels: {} idle, {} issuing, {} stalled{}; {}.",
                       percent(all.no_warp_us / all.time_us), percent(all.issuing_us / all.time_us),
                       percent(all.not_issuing_us / all.time_us), waits_text(all), change);
}

void append(std::vector<std::string>& sentences, const std::vector<std::string>& more) {
    sentences.insert(sentences.end(), more.begin(), more.end());
}

/// What was recorded, without what follows from it.
std::string recorded_wait(const PointFacts& facts) { return fmt::format("As recorded, {}.", host_wait_text(facts)); }

std::vector<std::string> answer_of(const Result& result, const Explanation& explanation) {
    const Point& point = *explanation.facts.point;
    const TimeBreakdown& breakdown = explanation.breakdown;
    std::vector<std::string> answer;
    if (!explanation.impossible.empty()) {
        for (const std::string& figure : explanation.impossible)
            answer.push_back(fmt::format("impossible: {}.", figure));
        answer.emplace_back("No conclusion is drawn from figures of which one is wrong.");
    } else if (!breakdown.unavailable.empty()) {
        answer = {breakdown.end_to_end_us > 0
                      ? fmt::format("{}. Why is unknown: {}.", takes_text(point, breakdown), breakdown.unavailable)
                      : fmt::format("{}: {}.", short_name(point), breakdown.unavailable)};
    } else if (!explanation.missing.empty()) {
        const ProgramFindings& program = explanation.program;
        if (program.is_always_launch_bound) {
            answer = {
                program.host_wait, first_sentence(point, breakdown),
                "What binds its kernels is not said: " + fmt::format("{}", fmt::join(explanation.missing, "; ")) + "."};
        } else {
            answer = {first_sentence(point, breakdown), no_conclusion(explanation.missing)};
            if (program.is_launch_bound) answer.push_back(recorded_wait(explanation.facts));
        }
        append(answer, program.sentences);
    } else {
        answer = explanation.contradictions;
        if (!explanation.program.host_wait.empty()) answer.push_back(explanation.program.host_wait);
        for (std::string& sentence : std::vector{
                 first_sentence(point, breakdown), causes_sentence(explanation), second_sentence(result, explanation),
                 serial_chain_sentence(breakdown, explanation.time_steps), third_sentence(explanation)})
            if (!sentence.empty()) answer.push_back(std::move(sentence));
        append(answer, explanation.program.sentences);
    }
    return answer;
}

Explanation explain_by(const Roofs& roofs, const Result& result, const Point& point) {
    Explanation explanation;
    explanation.facts = make_facts(point, roofs);
    const PointFacts& facts = explanation.facts;
    std::vector<StepRoofTimes>& roof_times = explanation.roof_times;
    std::vector<UnitActivity> units;
    std::vector<std::vector<std::string>> told;
    if (point.end_to_end)
        for (const StepFacts& step : facts.steps) {
            roof_times.push_back(roof_times_of_step(step, roofs));
            units.push_back(unit_activity(step));
            told.push_back(serial_chain_evidence(step, roof_times.back(), units.back(), roofs));
        }
    explanation.cycles = account_cycles(facts);
    explanation.breakdown = break_down(facts, roof_times, units, explanation.cycles);
    const TimeBreakdown& breakdown = explanation.breakdown;
    explanation.causes = find_causes(facts, roof_times, explanation.cycles);
    explanation.cross_checks = cross_check_all(facts, roof_times, explanation.cycles);
    explanation.elasticity = sm_elasticity(facts);
    explanation.theft = bandwidth_elasticity(facts);
    explanation.roofline = make_roofline(facts, roof_times);
    explanation.attribution = attribute_bandwidth(facts, roof_times);
    explanation.impossible = impossible_figures(result, facts, roof_times);
    explanation.missing = missing_ground(point, breakdown);
    explanation.interventions = interventions_of(facts, explanation.elasticity, explanation.theft);
    const Grounds grounds{
        facts, roof_times, units, explanation.cycles, told, &explanation.causes, &explanation.interventions};
    explanation.program = program_findings(facts, breakdown);
    const Verdicts judged = judge(grounds);
    explanation.verdicts = withheld_from(judged, explanation.impossible, explanation.missing);
    if (explanation.program.is_always_launch_bound && explanation.impossible.empty())
        explanation.verdicts.model = judged.model;
    explanation.suspects = find_suspects(grounds, is_at_power_limit(point.conditions));
    if (explanation.concludes())
        explanation.contradictions = contradictions(facts, breakdown.roof_times, explanation.interventions);
    explanation.time_steps = serial_chains_of(facts, roof_times, units);
    for (SerialChain& group : explanation.time_steps)
        group.bound = judge_together(group.layer, facts, explanation.verdicts, group.steps).bound;
    if (!explanation.concludes()) {
        withhold(explanation.elasticity);
        withhold(explanation.theft);
        withhold(explanation.causes);
        for (MarginalCheck& check : explanation.breakdown.marginal) check.finding.clear();
    }
    explanation.answer = answer_of(result, explanation);
    return explanation;
}

}  // namespace

Explanation explain(const Result& result, const Point& point) { return explain(result, point, Roofs(result)); }

Explanation explain(const Result& result, const Point& point, const Roofs& roofs) {
    const auto suffices = [](const RoofReadings& read) { return read.values.size() >= fewest_roof_readings; };
    if (std::ranges::none_of(point.conditions.roofs, suffices)) return explain_by(roofs, result, point);
    Explanation explanation = explain_by(roofs.during(point.conditions), result, point);
    explanation.is_by_roofs_between_samples = true;
    // Readings that the point contradicts were disturbed.
    const bool is_contradicted = worst_breach(explanation) || !explanation.impossible.empty();
    return is_contradicted ? explain_by(roofs, result, point) : explanation;
}

ExplainedResult::ExplainedResult(const Result& result) : result_(&result) {
    for (const Point& point : result.points) explanations_.push_back(explain(result, point));
}

std::vector<std::string> ExplainedResult::impossible() const {
    std::vector<std::vector<std::string>> of_points;
    for (const Explanation& one : explanations_) of_points.push_back(one.impossible);
    return each_once(result_->points, of_points);
}

ExplainedResult::ExplainedResult(const Result& result, std::vector<Explanation> points)
    : result_(&result), explanations_(std::move(points)) {
    if (explanations_.size() != result.points.size())
        throw std::invalid_argument("a report needs an explanation a point");
}

}  // namespace kbench
