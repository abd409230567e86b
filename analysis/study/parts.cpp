// The points of a study by their tasks, and what its tables show of one.
#include "analysis/study/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/explain/point_roofs.h"
#include "analysis/facts/counters.h"
#include "analysis/result/match.h"
#include "analysis/result/point_name.h"
#include "models/base/lists.h"

namespace kbench {

std::optional<std::size_t> StudyPoints::measured(const PlannedPoint& planned) const {
    for (std::size_t i = 0; i < explained->points().size(); ++i)
        if (is_planned(planned, point(i))) return i;
    return std::nullopt;
}

std::vector<std::size_t> StudyPoints::of_task(std::string_view task) const {
    std::vector<std::size_t> found;
    for (const PlannedPoint& planned : plan().points) {
        if (!contains(planned.tasks, task)) continue;
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
        const std::vector<std::string>& missing = points.explanation(index).missing;
        if (missing.empty()) continue;
        names.push_back(short_name(points.point(index)));
        if (why.empty()) why = missing.front();
    }
    if (names.empty()) return "";
    return fmt::format("No conclusion on the bottleneck is drawn from {}: {}{}.", fmt::join(names, "; "),
                       names.size() > 1 ? "of the first, " : "", why);
}

StudyRow row_of(const StudyPoints& points, std::size_t index) {
    const Point& point = points.point(index);
    const Explanation& explanation = points.explanation(index);
    const Summary& ms = point.end_to_end->latency.summary_ms;
    StudyRow row;
    row.point = index;
    row.latency_ms = Interval::of(ms);
    row.has_interval = ms.has_interval();
    if (ms.median > 0) row.sequences_per_s = 1e3 * static_cast<double>(point.batch()) / ms.median;
    row.roof_share = roof_share(explanation.breakdown);
    MeanByTime occupancy_pct;
    for (const StepResult& step : point.steps)
        occupancy_pct.add(counters_of(step).achieved_occupancy, step.device_us());
    row.occupancy_pct = occupancy_pct.mean();
    row.energy_j = value_of(point.end_to_end->energy_per_sequence_j);
    row.bound = verdict_text(explanation.verdicts.model);
    row.roof = binding_roof(explanation.breakdown);
    return row;
}

}  // namespace kbench
