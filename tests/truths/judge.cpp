// From what was planted and what kbench says to a row of the matrix.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/explain/theft.h"
#include "kbench/statistics.h"
#include "tests/truths/truth.h"

namespace kbench {
namespace {

bool is_right(const RightVerdict& right, const Verdict& said) {
    return right.bound == said.bound && (right.rule.empty() || right.rule == said.rule) &&
           (right.levels.empty() || std::ranges::find(right.levels, said.level) != right.levels.end());
}

JudgedFigure judge(const PlantedFigure& figure, const KnownResult& known) {
    JudgedFigure judged{.what = figure.what, .planted = figure.planted, .measured = figure.measured(known)};
    if (!judged.measured) return judged;
    judged.off = *judged.measured - figure.planted;
    if (figure.tolerance == Tolerance::of_planted) judged.off /= figure.planted;
    judged.holds = std::abs(judged.off) <= figure.within;  // false for NaN
    return judged;
}

/// The worse of two results; the enumerators stand in that order.
void worsen(Judgement& judgement, TruthResult result, const std::string& why) {
    judgement.result = std::max(judgement.result, result);
    judgement.why += (judgement.why.empty() ? "" : "; ") + why;
}

void judge_verdict(Judgement& judgement, const Planted& planted, const Explanation& explained) {
    const Verdict& said = explained.verdicts.steps.at(planted.judged);
    if (std::ranges::none_of(planted.right, [&](const RightVerdict& right) { return is_right(right, said); }))
        worsen(judgement, said.bound == Bound::not_identifiable ? TruthResult::cannot_tell : TruthResult::wrong,
               "the verdict");
    else if (explained.verdicts.model.bound != said.bound)
        worsen(
            judgement,
            explained.verdicts.model.bound == Bound::not_identifiable ? TruthResult::cannot_tell : TruthResult::wrong,
            fmt::format("the whole is said to be {}", name(explained.verdicts.model.bound)));
}

/// What a CPU's roofs, measured while others used its cores, are said to be first: there the figures do contradict each
/// other, and which of them is wrong is named.
bool blames_the_roofs(const std::string& finding) {
    return finding.find("suspect, in this order, the roofs") != std::string::npos;
}

/// Figures that cannot be: asked for, or a false alarm.
void judge_impossible(Judgement& judgement, const Planted& planted, const Explanation& explained) {
    const auto named = [&](const std::string& figure) { return figure.find(planted.impossible) != std::string::npos; };
    if (planted.impossible.empty()) {
        if (!explained.impossible.empty())
            worsen(judgement,
                   std::ranges::all_of(explained.impossible, blames_the_roofs) ? TruthResult::cannot_tell
                                                                               : TruthResult::wrong,
                   fmt::format("called impossible: {}", fmt::join(explained.impossible, "; ")));
    } else if (std::ranges::none_of(explained.impossible, named)) {
        worsen(judgement, TruthResult::wrong, "not called impossible");
    }
}

/// What a CPU's roofs were before the work and between its samples.
std::string readings_text(const Result& result) {
    std::string text;
    for (const Point& point : result.points)
        for (const RoofReadings& readings : point.conditions.roofs) {
            const auto before = std::ranges::find(result.ceilings.ceilings, readings.ceiling, &Ceiling::name);
            text += fmt::format("  {}: {:.4g} before, {:.4g} between the samples\n", readings.ceiling,
                                before == result.ceilings.ceilings.end() ? 0 : before->value.value.value_or(0),
                                fmt::join(readings.values, ", "));
        }
    for (const Point& point : result.points)
        for (const SizeScaling& scaling : point.size_scaling)
            for (const SizeTime& time : scaling.times)
                text += fmt::format("  {} times its size: {:.4g} us [{:.4g}, {:.4g}]\n", time.factor, time.us.median,
                                    time.us.p25, time.us.p75);
    return text;
}

/// Those that the judged step may be set against: its own, and of DRAM both kinds of traffic.
std::set<std::string> roofs_of(const KnownResult& known) {
    std::set<std::string> names;
    for (const RoofTime& time : known.explained.roof_times.front().work) {
        names.insert(time.roof.ceiling);
        if (time.level == Level::dram) names.insert({"cpu_dram_read", "cpu_dram_triad"});
    }
    return names;
}

/// Beside thieves that only compute the work's times are one, but where those change places with others, so that it
/// does not matter. Without any, work and thief shared a core.
std::string moved_beside_thieves(const Point& point) {
    if (!point.theft) return "";
    if (!point.theft->unavailable.empty()) return point.theft->unavailable;
    std::vector<double> ms;
    for (const ThiefRun& run : point.theft->runs)
        if (run.takes == "compute") ms.push_back(run.latency_ms);
    if (ms.empty() || ms.size() >= turns_for_interval) return "";
    const auto [low, high] = std::ranges::minmax(ms);
    if (high - low <= steady_roof * high) return "";
    return fmt::format("beside a thief that only computes the work took {:.3g} to {:.3g} ms: others use this host", low,
                       high);
}

}  // namespace

Judgement judge(std::string_view truth, const Planted& planted, const KnownResult& known) {
    Judgement judgement{.truth = std::string(truth), .planted = planted.what, .result = TruthResult::ok};
    if (!known.unavailable.empty()) {
        worsen(judgement, TruthResult::cannot_tell, known.unavailable);
        return judgement;
    }
    const Verdict& said = known.explained.verdicts.steps.at(planted.judged);
    judgement.bound = name(said.bound);
    judgement.level = said.level;
    judgement.rule = said.rule;
    judge_impossible(judgement, planted, known.explained);
    if (!planted.right.empty()) judge_verdict(judgement, planted, known.explained);
    for (const PlantedFigure& figure : planted.figures) {
        const JudgedFigure& judged = judgement.figures.emplace_back(judge(figure, known));
        if (!judged.measured)
            worsen(judgement, TruthResult::cannot_tell, judged.what + " was not counted");
        else if (!judged.holds)
            worsen(judgement, TruthResult::wrong, judged.what);
    }
    if (judgement.result != TruthResult::ok)
        judgement.account = account(known.explained, planted.judged) + readings_text(*known.result);
    return judgement;
}

std::string disturbance(const HostLook& before, const KnownResult& known, const HostLook& after) {
    if (before.work_ms == 0 || !known.unavailable.empty()) return "";
    const Point& point = known.result->points.front();
    std::vector<std::pair<std::string, double>> times{{"before", before.work_ms}, {"afterwards", after.work_ms}};
    if (point.end_to_end) times.emplace_back("when it was timed", point.end_to_end->latency.summary_ms.median);
    if (point.steps.size() == 1 && !point.size_scaling.empty() && !point.size_scaling.front().times.empty())
        times.emplace_back("beside other sizes", point.size_scaling.front().times.front().us.median * 1e-3);
    for (const auto& [when, ms] : times)
        if (std::abs(ms - before.work_ms) > steady_pace * before.work_ms)
            return fmt::format("the same work took {:.3g} ms before and {:.3g} ms {}: others use this host",
                               before.work_ms, ms, when);
    if (const std::string why = moved_beside_thieves(point); !why.empty()) return why;
    for (const std::string& name : roofs_of(known)) {
        std::vector<double> values;
        for (const HostLook* look : {&before, &after})
            for (const Ceiling& ceiling : look->roofs.ceilings)
                if (ceiling.name == name && ceiling.value.value) values.push_back(*ceiling.value.value);
        for (const RoofReadings& readings : point.conditions.roofs) {
            if (readings.ceiling != name || readings.values.empty()) continue;
            const Summary read = summarise(readings.values);
            values.insert(values.end(), {read.p25, read.p75});
        }
        if (values.empty()) continue;
        const auto [low, high] = std::ranges::minmax(values);
        if (high - low > steady_roof * high)
            return fmt::format("{} was between {:.3g} and {:.3g}: others use this host", name, low, high);
    }
    return "";
}

}  // namespace kbench
