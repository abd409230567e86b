// What speaks against a point: then no sentence of a study rests on it, and the report says why.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/compare/sweep_findings.h"
#include "analysis/explain/executed.h"
#include "analysis/study/study.h"
#include "analysis/study/throttling.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// Steps that ran otherwise than asked decide nothing below this share of the steps' time.
constexpr double few_steps = 0.02;

std::string slowed(const Point& point) {
    const std::string seen = joined(point.conditions.throttle_reasons, ", ", [](const std::string& reason) {
        return contains(slowing_reasons, reason) ? reason : "";
    });
    if (starved(point.conditions))
        return fmt::format("the process lacked its CPUs for {} of the time while it was timed",
                           percent(*point.conditions.cpu_share->lacked()));
    return seen.empty() ? "" : fmt::format("the device was slowed by {} while it was timed", seen);
}

/// Where counters say that most of what matters ran in another precision.
std::string ran_otherwise(const Point& point) {
    double all_us = 0, other_us = 0;
    std::string first;
    for (const StepResult& step : point.steps) {
        const double us = step.device_us().value_or(0);
        all_us += us;
        const std::optional<std::string> mismatch = executed_mismatch(step);
        if (!mismatch) continue;
        other_us += us;
        if (first.empty()) first = fmt::format("{}: {}", step.layer, *mismatch);
    }
    if (first.empty() || other_us < few_steps * all_us) return "";
    return fmt::format("steps with {} of its time did not run as asked, the first of them {}",
                       percent(other_us / all_us), first);
}

/// FLOPs a sequence, which all batches of a model have in common.
double flops_of_sequence(const Point& point) { return point.cost.flops / static_cast<double>(point.batch()); }

/// Whether the point's work is what its batch asks for, as far as most other points of the same kind tell.
bool has_own_work(const std::vector<Point>& points, const Point& point) {
    std::vector<double> others;
    for (const Point& other : points)
        if (other.status == PointStatus::done && other.direction() == point.direction() && other.seq() == point.seq())
            others.push_back(flops_of_sequence(other));
    std::ranges::sort(others);
    const double usual = others.empty() ? 0 : others[others.size() / 2];
    return usual > 0 && std::abs(flops_of_sequence(point) / usual - 1) < 0.01;
}

void note(std::string& reason, std::string text) {
    if (reason.empty()) reason = std::move(text);
}

}  // namespace

std::vector<std::string> not_evidence(const ExplainedResult& explained) {
    const std::vector<Point>& points = explained.points();
    std::vector<std::string> reasons(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Point& point = points[i];
        if (point.status != PointStatus::done || !point.end_to_end) {
            reasons[i] = point.reason.empty() ? std::string(name(point.status)) : point.reason;
            continue;
        }
        if (!explained.of(i).impossible.empty()) reasons[i] = explained.of(i).impossible.front();
        note(reasons[i], slowed(point));
        note(reasons[i], ran_otherwise(point));
    }
    for (const SamePoints& same : same_points(points)) {
        const bool first_fits = has_own_work(points, points[same.first]),
                   second_fits = has_own_work(points, points[same.second]);
        const bool is_told = !same.executed_alike && first_fits != second_fits;
        if (!is_told || !first_fits) note(reasons[same.first], same.finding);
        if (!is_told || !second_fits) note(reasons[same.second], same.finding);
    }
    return reasons;
}

}  // namespace kbench
