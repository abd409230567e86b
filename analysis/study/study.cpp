// The parts of a study, one after another.
#include "analysis/study/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/explain/point_roofs.h"
#include "analysis/facts/counters.h"
#include "analysis/result/frames.h"
#include "analysis/result/match.h"
#include "analysis/result/point_name.h"
#include "analysis/study/parts.h"

namespace kbench {
namespace {

/// What a planned point is called though nobody measured it.
std::string planned_name(const PlannedPoint& planned) {
    Point point;
    point.axes = planned.axes;
    point.batch_is_max = false;
    std::string text = short_name(point);
    return planned.batch_is_max ? text + ", the largest batch that fits" : text;
}

std::vector<StudyExclusion> exclusions_of(const StudyPoints& points) {
    std::vector<StudyExclusion> excluded;
    std::vector<bool> is_planned_point(points.reasons.size(), false);
    for (const PlannedPoint& planned : points.plan().points) {
        const std::optional<std::size_t> index = points.measured(planned);
        if (!index) {
            const bool is_missing = planned.left_out.empty();
            excluded.push_back({planned_name(planned), planned.tasks,
                                is_missing ? "it is missing from the result, though it was to be measured"
                                           : "left out: " + planned.left_out,
                                is_missing});
            continue;
        }
        is_planned_point[*index] = true;
        if (points.reasons[*index].empty()) continue;
        const Point& point = points.point(*index);
        const bool is_done = point.status == PointStatus::done;
        excluded.push_back(
            {short_name(point), planned.tasks,
             is_done ? points.reasons[*index] : fmt::format("{}: {}", name(point.status), points.reasons[*index]),
             point.status != PointStatus::skipped});
    }
    for (std::size_t i = 0; i < is_planned_point.size(); ++i)
        if (!is_planned_point[i])
            excluded.push_back({short_name(points.point(i)), {}, "the study has not planned it", false});
    std::ranges::stable_sort(excluded, std::greater{}, &StudyExclusion::is_suspect);
    return excluded;
}

std::optional<double> mean_occupancy(const Point& point) {
    double sum = 0, us = 0;
    for (const StepResult& step : point.steps) {
        const std::optional<double> occupancy = counters_of(step).achieved_occupancy, time = step.device_us();
        if (!occupancy || !time) continue;
        sum += *occupancy * *time;
        us += *time;
    }
    return us > 0 ? std::optional(sum / us) : std::nullopt;
}

}  // namespace

std::optional<std::size_t> StudyPoints::measured(const PlannedPoint& planned) const {
    for (std::size_t i = 0; i < explained->points().size(); ++i)
        if (is_planned(planned, point(i))) return i;
    return std::nullopt;
}

std::vector<std::size_t> StudyPoints::of_task(std::string_view task) const {
    std::vector<std::size_t> found;
    for (const PlannedPoint& planned : plan().points) {
        if (std::ranges::find(planned.tasks, task) == planned.tasks.end()) continue;
        if (const std::optional<std::size_t> index = measured(planned); index && reasons[*index].empty())
            found.push_back(*index);
    }
    return found;
}

std::optional<std::size_t> StudyPoints::base() const {
    const std::vector<std::size_t> found = of_task(bottlenecks_task);
    return found.empty() ? std::nullopt : std::optional(found.front());
}

std::string without_ground(const StudyPoints& points, const std::vector<std::size_t>& of) {
    std::vector<std::string> names;
    std::string why;
    for (const std::size_t index : of) {
        const std::vector<std::string>& missing = points.explained->of(index).missing;
        if (missing.empty()) continue;
        names.push_back(short_name(points.point(index)));
        if (why.empty()) why = missing.front();
    }
    if (names.empty()) return "";
    return fmt::format("No conclusion on what binds is drawn from {}: {}{}.", fmt::join(names, "; "),
                       names.size() > 1 ? "of the first, " : "", why);
}

StudyRow row_of(const StudyPoints& points, std::size_t index) {
    const Point& point = points.point(index);
    const Explanation& explanation = points.explained->of(index);
    const Summary& ms = point.end_to_end->latency.summary_ms;
    StudyRow row;
    row.point = index;
    row.latency_ms = Interval::of(ms);
    row.has_interval = ms.has_interval();
    if (ms.median > 0) row.sequences_per_s = 1e3 * static_cast<double>(point.batch()) / ms.median;
    row.roof_share = roof_share(explanation.ledger);
    row.occupancy_pct = mean_occupancy(point);
    row.energy_j = value_of(point.end_to_end->energy_per_sequence_j);
    row.bound = verdict_text(explanation.verdicts.model);
    row.roof = binding_roof(explanation.ledger);
    return row;
}

Study study_of(const ExplainedResult& explained) {
    if (!explained.result().study) throw std::invalid_argument("the result is no study");
    const StudyPoints points{&explained, not_evidence(explained)};
    Study study;
    if (!explained.points().empty()) study.sequence = sequence_word(explained.points().front());
    study.base = points.base();
    study.excluded = exclusions_of(points);
    study.answers = {answer_bottlenecks(points, study), answer_batch(points, study), answer_precision(points, study),
                     answer_directions(points, study)};
    for (std::size_t i = 0; i < study.answers.size(); ++i) study.answers[i].kind = &study_tasks[i];
    if (!study.base)
        study.changes_unavailable = "What to change is not said: the point that was to be looked at is no evidence.";
    else
        study.changes_unavailable = without_ground(points, {*study.base});
    study.changes = changes_of(points, study);
    study.elsewhere = elsewhere_of(points, study);
    return study;
}

}  // namespace kbench
