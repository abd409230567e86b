// See sweep_findings.h.
#include "analysis/compare/sweep_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace kbench {
namespace {

bool has_kernels(const StepResult& step) { return !step.kernels.empty(); }

/// What computed each step, as text: kernels where they were recorded, else providers and implementations.
std::string executed_text(const Point& point) {
    const bool recorded = std::ranges::any_of(point.steps, has_kernels);
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

std::string batch_text(const Point& point) { return fmt::format("batch {}", point.batch); }
std::string seq_text(const Point& point) { return fmt::format("seq {}", point.seq); }
std::string precision_text(const Point& point) { return std::string(name(point.precision)); }

using Text = std::string (*)(const Point&);

/// What two points are asked: they agree in all but `differs`; `same` must not agree as well.
struct Question {
    Text differs, common_a, common_b;
    std::optional<std::string> (*same)(const Point&);
    std::string_view finding;
};
constexpr Question questions[] = {
    {precision_text, batch_text, seq_text, [](const Point& p) { return std::optional(executed_text(p)); },
     "executed the same kernels or implementations in every step: at least one of them did not run as asked"},
    {batch_text, seq_text, precision_text, sampled_text, "have identical samples: they are one measurement"},
    {seq_text, batch_text, precision_text, sampled_text, "have identical samples: they are one measurement"},
    {batch_text, seq_text, precision_text, launched_text,
     "launched the same kernels with the same grids throughout: the work did not change"},
    {seq_text, batch_text, precision_text, launched_text,
     "launched the same kernels with the same grids throughout: the work did not change"},
};

}  // namespace

std::vector<std::string> sweep_findings(std::span<const Point> points) {
    std::vector<std::string> findings;
    for (const Question& question : questions) {
        std::map<std::string, const Point*> first;  // by what is common and what must differ
        for (const Point& point : points) {
            if (point.status != PointStatus::done || !point.end_to_end || point.steps.empty()) continue;
            const std::optional<std::string> same = question.same(point);
            if (!same) continue;
            const std::string common = fmt::format("{} {} {} {} {}", point.model, point.backend, point.attention,
                                                   question.common_a(point), question.common_b(point));
            const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", common, point.direction, point.seed,
                                                point.weights, point.repeat, *same);
            const Point& other = *first.emplace(key, &point).first->second;
            if (question.differs(other) == question.differs(point)) continue;
            std::string finding = fmt::format("{}: {} and {} {}", common, question.differs(other),
                                              question.differs(point), question.finding);
            if (std::ranges::find(findings, finding) == findings.end()) findings.push_back(std::move(finding));
        }
    }
    return findings;
}

}  // namespace kbench
