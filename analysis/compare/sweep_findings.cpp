// Points of a sweep are compared by their samples, kernels and implementations.
#include "analysis/compare/sweep_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "models/base/lists.h"

namespace kbench {
namespace {

bool has_kernels(const StepResult& step) { return !step.kernels.empty(); }

/// What computed each step, as text: kernels where they were recorded, on a CPU providers and implementations. Nothing
/// of a GPU without records: one algorithm of a library has the same name in several precisions.
std::optional<std::string> executed_text(const Point& point) {
    const bool recorded = std::ranges::any_of(point.steps, has_kernels);
    if (!recorded && point.backend() != "cpu") return std::nullopt;
    std::string text = recorded ? "kernels:" : "implementations:";
    for (const StepResult& step : point.steps) {
        text += fmt::format("\n{}", step.op);
        if (!recorded) text += fmt::format(" {} {}", step.provider, step.implementation);
        for (const KernelResult& kernel : step.kernels) text += fmt::format(" {}", kernel.name);
    }
    return text;
}

/// The same with every launch; nothing where kernels were not recorded.
std::optional<std::string> launched_text(const Point& point) {
    if (std::ranges::none_of(point.steps, has_kernels)) return std::nullopt;
    std::string text;
    for (const StepResult& step : point.steps)
        for (const KernelResult& k : step.kernels)
            text += fmt::format("{} {},{},{}\n", k.name, k.grid[0], k.grid[1], k.grid[2]);
    return text;
}

std::optional<std::string> sampled_text(const Point& point) {
    std::string text;
    for (const double ms : point.end_to_end->latency.samples_ms) text += fmt::format("{} ", ms);
    return text.empty() ? std::nullopt : std::optional(text);
}

using Same = std::optional<std::string> (*)(const Point&);

/// What two points that differ on an axis of that kind alone must not agree in.
struct Question {
    AxisKind kind;
    Same same;
    std::string_view finding;
};
constexpr Question questions[] = {
    {AxisKind::word, executed_text,
     "executed the same kernels or implementations in every step: at least one of them did not run as asked"},
    {AxisKind::count, sampled_text, "have identical samples: they are one measurement"},
    {AxisKind::count, launched_text,
     "launched the same kernels with the same grids throughout: the work did not change"},
};

/// What the points have in common, as a finding says it: each repeat says the same.
std::string common_text(const Point& point, const Axis& asked) {
    std::string text;
    for (const Axis& axis : axes()) {
        const AxisValue* value = point.axes.find(axis.name);
        if (value == nullptr || &axis == &asked || axis.role == AxisRole::again) continue;
        const bool is_told = axis.always_told || !(axis.order != 0 || axis.beside_model);
        if (!is_told && point.axes.is_usual(axis)) continue;
        const bool is_count = axis.kind == AxisKind::count;
        text += fmt::format("{}{}", text.empty() ? "" : " ", is_count ? said(axis, *value) : text_of(*value));
    }
    return text;
}

/// All in which they must agree.
std::string key_of(const Point& point, const Axis& asked) {
    std::string key = fmt::format("{}\n{}", point.seed, point.weights);
    for (const Axis& axis : axes())
        if (const AxisValue* value = point.axes.find(axis.name); value && &axis != &asked)
            key += fmt::format("\n{} {}", axis.name, text_of(*value));
    return key;
}

void ask(const Question& question, const Axis& axis, std::span<const Point> points, std::vector<SamePoints>& found) {
    std::map<std::string, std::size_t> first;  // by what is common and what must differ
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Point& point = points[i];
        const AxisValue* value = point.axes.find(axis.name);
        if (value == nullptr || point.status != PointStatus::done || !point.end_to_end || point.steps.empty()) continue;
        const std::optional<std::string> same = question.same(point);
        if (!same) continue;
        const std::string key = fmt::format("{}\n{}", key_of(point, axis), *same);
        const std::size_t earlier = first.emplace(key, i).first->second;
        const AxisValue& other = *points[earlier].axes.find(axis.name);
        if (other == *value) continue;
        found.push_back({earlier, i, question.kind == AxisKind::word,
                         fmt::format("{}: {} and {} {}", common_text(point, axis), said(axis, other),
                                     said(axis, *value), question.finding)});
    }
}

}  // namespace

std::vector<SamePoints> same_points(std::span<const Point> points) {
    std::vector<SamePoints> found;
    for (const Question& question : questions)
        for (const Axis& axis : axes())
            if (axis.sweeps && axis.kind == question.kind) ask(question, axis, points, found);
    return found;
}

std::vector<std::string> sweep_findings(std::span<const Point> points) {
    std::vector<std::string> findings;
    for (const SamePoints& same : same_points(points)) add_once(findings, same.finding);
    return findings;
}

}  // namespace kbench
