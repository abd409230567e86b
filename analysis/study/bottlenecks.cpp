// Which layers and kernels take the time, how full they keep the SMs, what binds them, and what could be won.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "analysis/explain/point_roofs.h"
#include "analysis/facts/point_facts.h"
#include "analysis/study/parts.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// Layers that are told in words; the table has all.
constexpr std::size_t told_layers = 3;

/// What a step's time has above its longest roof time; nothing where no roof is known.
std::optional<Interval> recoverable(const StepRoofTimes& roof_times, const Interval& time_us) {
    const RoofTime* longest = roof_times.binding();
    if (longest == nullptr) return std::nullopt;
    const double most = std::max(longest->us, longest->run_us.high), least = std::min(longest->us, longest->run_us.low);
    return Interval{std::max(0.0, time_us.value - longest->us), std::max(0.0, time_us.low - most),
                    std::max(0.0, time_us.high - least)};
}

StudyLayer layer_of(PointAt at, const Explanation& explanation, const std::string& name) {
    const std::vector<Verdict>& verdicts = explanation.verdicts.layers;
    StudyLayer layer;
    layer.name = name;
    layer.share = scaled(layer_share(at, name).value, 0.01);
    MeanByTime achieved, theoretical;
    double longest_us = 0;
    bool has_roofs = true;
    Interval above;
    for (std::size_t i = 0; i < explanation.facts.steps.size(); ++i) {
        const StepFacts& facts = explanation.facts.steps[i];
        const StepResult& step = *facts.step;
        if (layer_group(step.layer) != name) continue;
        const Interval& time = facts.device_us;
        layer.time_us += time;
        achieved.add(facts.counters.achieved_occupancy, time.value);
        const std::optional<Interval> rest =
            i < explanation.roof_times.size() ? recoverable(explanation.roof_times[i], time) : std::nullopt;
        has_roofs = has_roofs && rest;
        if (rest) above += *rest;
        if (step.kernels.empty() && time.value > longest_us) {
            longest_us = time.value;
            layer.kernel = step.implementation;
        }
        for (const KernelResult& kernel : step.kernels) {
            theoretical.add(kernel.theoretical_occupancy_pct.value, kernel.time_us);
            if (kernel.time_us <= longest_us) continue;
            longest_us = kernel.time_us;
            layer.kernel = kernel.short_name;
            layer.limiter = joined(kernel.limiters, ", ");
        }
    }
    if (has_roofs) layer.recoverable_us = above;
    layer.achieved_pct = achieved.mean();
    layer.theoretical_pct = theoretical.mean();
    const auto verdict = std::ranges::find(verdicts, name, &Verdict::subject);
    if (verdict != verdicts.end()) {
        layer.bound = verdict_text(*verdict);
        layer.is_identified = verdict->bound != Bound::not_identifiable;
    }
    return layer;
}

std::string occupancy_text(const StudyLayer& layer) {
    if (!layer.achieved_pct) return "";
    std::string text = fmt::format(", occupancy {:.0f} %", *layer.achieved_pct);
    if (layer.theoretical_pct) text += fmt::format(" of the {:.0f} % that its launch allows", *layer.theoretical_pct);
    if (!layer.limiter.empty()) text += fmt::format(", limited by {}", layer.limiter);
    return text;
}

}  // namespace

StudyAnswer answer_bottlenecks(const StudyPoints& points, Study& study) {
    StudyAnswer answer;
    if (!study.base) {
        answer.notes.push_back("The point that was to be looked at is no evidence: see the points left aside.");
        return answer;
    }
    const std::size_t index = *study.base;
    const PointAt at = points.at(index);
    const Point& point = at.point;
    const Explanation& explanation = points.explanation(index);
    if (std::string why = without_ground(points, {index}); !why.empty()) answer.notes.push_back(std::move(why));
    for (const StepResult& step : point.steps)
        if (const std::string name = layer_group(step.layer);
            std::ranges::find(study.layers, name, &StudyLayer::name) == study.layers.end())
            study.layers.push_back(layer_of(at, explanation, name));
    std::ranges::stable_sort(study.layers, std::greater{}, [](const StudyLayer& layer) { return layer.time_us.value; });
    if (study.layers.empty() || study.layers.front().time_us.value <= 0) {
        answer.notes.push_back("No step was timed.");
        return answer;
    }
    answer.findings.push_back(
        told("One run at batch {} in {} takes {}.", point.batch(), name(point.precision()), latency(at)));
    for (const StudyLayer& layer : study.layers | std::views::take(told_layers)) {
        const StudyFigure share = layer_share(at, layer.name);
        // Template arguments fill lines, and stand in the table.
        StudyFinding sentence = told("{} has {} of the steps' time ({}{})", layer.name, share,
                                     layer.kernel.substr(0, layer.kernel.find('<')), occupancy_text(layer));
        if (!layer.bound.empty() && explanation.concludes())
            sentence += {"; " + (layer.is_identified ? layer.bound : "bottleneck unknown")};
        if (layer.recoverable_us)
            sentence += told("; {} of it are above its roof time", recoverable_time(index, layer, share.has_interval));
        answer.findings.push_back(sentence += {"."});
    }
    if (!explanation.breakdown.roofs_unavailable.empty())
        answer.notes.push_back(
            fmt::format("What could be recovered is not known: {}.", explanation.breakdown.roofs_unavailable));
    if (point.backend() == "cuda" && !study.layers.front().achieved_pct)
        answer.notes.push_back(fmt::format("Achieved occupancy is not known: {}.", point.counters.unavailable.empty()
                                                                                       ? "it was not counted"
                                                                                       : point.counters.unavailable));
    return answer;
}

}  // namespace kbench
