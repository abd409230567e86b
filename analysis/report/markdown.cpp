// report.md: the report for pull requests. What is said of each point is in markdown_ledger.cpp and
// markdown_evidence.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/report/markdown_sections.h"
#include "analysis/report/markdown_text.h"
#include "analysis/report/writers.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"

namespace kbench {
namespace {

std::string title(const Result& result) {
    std::vector<std::string> models;
    for (const Point& point : result.points)
        if (std::ranges::find(models, point.model()) == models.end()) models.push_back(point.model());
    std::string names;
    for (const std::string& model : models) names += (names.empty() ? "" : ", ") + markdown_text(model);
    const Environment& environment = result.environment;
    const bool on_gpu = environment.gpu && std::ranges::any_of(result.points, [](const Point& point) {
                            return point.backend() == "cuda";
                        });
    return fmt::format("# {} on {}\n\n", names.empty() ? "kbench" : names,
                       markdown_text(on_gpu ? environment.gpu->name : environment.host.cpu));
}

/// One row for each point of a sweep.
std::string points_section(const Result& result, const std::vector<Explanation>& explanations) {
    MarkdownTable table({{"point", Align::left},
                         {"median ms"},
                         {"95 % interval"},
                         {"tokens/s"},
                         {"TFLOP/s"},
                         {"roofs demand %"},
                         {"residual %"},
                         {"verdict", Align::left},
                         {"status", Align::left}});
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        const Point& point = result.points[i];
        std::vector<std::string> cells = {markdown_text(point_name(point))};
        if (point.end_to_end) {
            const Summary& ms = point.end_to_end->latency.summary_ms;
            const Ledger& ledger = explanations[i].ledger;
            const Verdict& verdict = explanations[i].verdicts.model;
            const int decimals = decimals_for(ms.median, 4);
            cells.push_back(fmt::format("{:.{}f}", ms.median, decimals));
            cells.push_back(
                ms.has_interval() ? fmt::format("{:.{}f} to {:.{}f}", ms.ci_low, decimals, ms.ci_high, decimals) : "");
            const std::optional<double>& tokens = point.end_to_end->tokens_per_s;
            cells.push_back(tokens ? significant(*tokens) : "");
            cells.push_back(ms.median > 0 ? significant(point.cost.flops / ms.median * 1e-9) : "");
            cells.push_back(ledger.roofs_unavailable.empty() && ledger.end_to_end_us > 0
                                ? fmt::format("{:.1f}", 100 * ledger.total.demand_us() / ledger.end_to_end_us)
                                : "");
            cells.push_back(fmt::format("{:.2f}", 100 * ledger.residual_share()));
            cells.emplace_back(name(verdict.bound));
        } else {
            cells.resize(cells.size() + 7);
        }
        const std::string reason = point.reason.empty() ? "" : ": " + markdown_text(point.reason);
        cells.push_back(std::string(name(point.status)) + reason);
        table.add_row(std::move(cells));
    }
    return "## All points\n\nTimes are measured; TFLOP/s (useful work), demand and residual are derived.\n" +
           table.text();
}

std::string verification_text(const Verification& verification) {
    if (!verification.enabled) return "Not verified: turned off.\n\n";
    if (verification.steps.empty()) return "Not verified: nothing was checked.\n\n";
    const auto wrong = std::ranges::count_if(
        verification.steps, [](const VerifiedStep& step) { return !(step.error_over_bound <= 1); });  // NaN, too
    return fmt::format("Verified against the reference: {} distinct steps, {}.\n\n", verification.steps.size(),
                       wrong == 0 ? "all within their bounds" : fmt::format("**{} wrong**", wrong));
}

/// Why kernels and counters are missing.
std::string profile_text(const Point& point) {
    std::string text;
    if (!point.activity.unavailable.empty())
        text += fmt::format("Kernels: unavailable: {}.\n\n", markdown_text(point.activity.unavailable));
    if (!point.counters.unavailable.empty())
        text += fmt::format("Counters: unavailable: {}.\n\n", markdown_text(point.counters.unavailable));
    return text;
}

std::string point_sections(const Point& point, const Explanation& explanation, Heading heading) {
    if (point.status != PointStatus::done)
        return fmt::format("{}: {}.\n\n", name(point.status), markdown_text(point.reason));
    return answer_section(explanation, heading) + figures_section(point, explanation, heading) +
           verification_text(point.verification) + profile_text(point) + ledger_section(explanation.ledger, heading) +
           marginal_section(explanation.ledger, heading) + attribution_section(explanation.attribution, heading) +
           verdict_section(explanation.verdicts, heading) + occupancy_section(point, heading) +
           conditions_section(point, heading);
}

std::string warnings_section(const std::vector<std::string>& warnings) {
    if (warnings.empty()) return {};
    std::string text = "## Warnings\n\n";
    for (const std::string& warning : warnings) text += "- " + markdown_text(warning) + '\n';
    return text + '\n';
}

}  // namespace

std::string write_markdown(const Result& result) {
    std::vector<Explanation> explanations;
    for (const Point& point : result.points) explanations.push_back(explain(result, point));
    std::string text = title(result);
    if (result.points.size() > 1) text += points_section(result, explanations);
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        const Point& point = result.points[i];
        const std::string name = markdown_text(point_name(point));
        text += result.points.size() > 1 ? "## " + name + "\n\n" : name + "\n\n";
        text += point_sections(point, explanations[i], {result.points.size() > 1 ? 3 : 2});
    }
    const Heading heading{2};
    text += warnings_section(result.warnings) + ceilings_section(result.ceilings, heading) +
            environment_section(result.environment, heading);
    text +=
        "Every figure is measured, derived (arithmetic on measured figures or on the cost model), estimated, or "
        "unavailable with its reason. GB is 1e9 bytes.\n";
    return text;
}

}  // namespace kbench
