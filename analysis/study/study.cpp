// The parts of a study, one after another.
#include "analysis/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "analysis/result/frames.h"
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

}  // namespace

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
    study.changes_unavailable = study.base
                                    ? without_ground(points, {*study.base})
                                    : "What to change is not said: the point that was to be looked at is no evidence.";
    study.changes = changes_of(points, study);
    study.elsewhere = elsewhere_of(points, study);
    return study;
}

}  // namespace kbench
