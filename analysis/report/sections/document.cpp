// Which sections a report has, in which order.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/machine/machine.h"
#include "analysis/report/sections/sections.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"

namespace kbench {
namespace {

Section closing_section() {
    return {
        "",
        {Paragraph{
            "Every figure is measured, derived (arithmetic on measured figures or on the cost model), estimated, or unavailable with its reason. GB is 1e9 bytes."}}};
}

void add_sections(Section& into, const ExplainedResult& explained, std::size_t index) {
    const Point& point = explained.points()[index];
    const Explanation& explanation = explained.of(index);
    if (point.status != PointStatus::done) {
        into.add(Paragraph{fmt::format("{}: {}.", name(point.status), point.reason)});
        return;
    }
    into.add(answer_section(explanation));
    into.add(figures_section(point, explanation, Depth::full));
    into.add(checks_section(point, Depth::full));
    into.add(directions_section(explained, index, directions_of(explained, index), Depth::full));
    into.add(ledger_section(explanation.ledger, Depth::full));
    into.add(demands_section(explanation.ledger));
    into.add(dependent_section(explanation.dependent));
    into.add(cycles_section(explanation.cycles));
    into.add(closures_section(explanation.closures));
    into.add(marginal_section(explanation.ledger));
    into.add(elasticity_section(explanation.elasticity));
    into.add(attribution_section(explanation.attribution));
    into.add(verdict_section(explanation.verdicts));
    into.add(hardware_section(point, Depth::full));
    into.add(conditions_section(point, Depth::full));
}

/// A block of the terminal. What went wrong in a point that is not done is told too.
Section point_summary(const ExplainedResult& explained, std::size_t index) {
    const Point& point = explained.points()[index];
    const Explanation& explanation = explained.of(index);
    if (point.status != PointStatus::done) {
        Section section{fmt::format("{}: {}: {}", placed_name(point), name(point.status), point.reason)};
        if (!point.verification.steps.empty())
            for (Block& block : checks_section(point, Depth::summary).blocks) section.add(std::move(block));
        return section;
    }
    Section section{point_heading(point)};
    section.add(Facts{{{"weights",
                        fmt::format("{} parameters, {}, seed {}", significant(static_cast<double>(point.parameters)),
                                    point.weights, point.seed),
                        ""}}});
    const Section parts[] = {figures_section(point, explanation, Depth::summary),
                             conditions_section(point, Depth::summary), checks_section(point, Depth::summary)};
    for (const Section& part : parts)
        for (const Block& block : part.blocks) section.add(block);
    Section why = answer_section(explanation);
    const bool has_ledger = explanation.ledger.unavailable.empty() && explanation.ledger.end_to_end_us > 0;
    if (!has_ledger && explanation.concludes()) why = {};
    for (Block& block : ledger_section(explanation.ledger, Depth::summary).blocks) why.add(std::move(block));
    section.add(std::move(why));
    section.add(ops_section(point));
    section.add(layers_section(point));
    section.add(directions_section(explained, index, directions_of(explained, index), Depth::summary));
    section.add(hardware_section(point, Depth::summary));
    return section;
}

}  // namespace

std::string report_title(const Result& result) {
    std::vector<std::string> models;
    for (const Point& point : result.points)
        if (std::ranges::find(models, point.model()) == models.end()) models.push_back(point.model());
    std::string names;
    for (const std::string& model : models) names += (names.empty() ? "" : ", ") + model;
    const Environment& environment = result.environment;
    const auto on_gpu = [](const Point& point) { return point.backend() == "cuda"; };
    const bool is_gpu = environment.gpu && std::ranges::any_of(result.points, on_gpu);
    return fmt::format("{} on {}", names.empty() ? "kbench" : names,
                       is_gpu ? device_name(*environment.gpu) : environment.host.cpu);
}

std::string origin_text(const Quantity& quantity) {
    if (!quantity.reason.empty()) return fmt::format("{}: {}", name(quantity.origin), quantity.reason);
    return quantity.value ? std::string(name(quantity.origin)) : "unavailable: no reason recorded";
}

std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }

Document report_of(const ExplainedResult& explained) {
    const Result& result = explained.result();
    Document document{report_title(result), {}};
    const bool is_sweep = result.points.size() > 1;
    if (result.study) {
        std::ranges::move(study_sections(explained, study_of(explained), Depth::full),
                          std::back_inserter(document.sections));
        document.sections.push_back(points_section(explained, Depth::full));
        document.sections.push_back(
            {"",
             {Paragraph{
                 "report.html has all of each point; `kbench report` draws any file of points/ as a report of its own."}}});
    } else if (is_sweep) {
        document.sections.push_back(points_section(explained, Depth::full));
        std::ranges::move(series_sections(explained, Depth::full), std::back_inserter(document.sections));
    }
    for (std::size_t i = 0; i < result.points.size() && !result.study; ++i) {
        Section point{is_sweep ? point_name(result.points[i]) : ""};
        if (!is_sweep) point.add(Paragraph{point_name(result.points[i])});
        add_sections(point, explained, i);
        document.sections.push_back(std::move(point));
    }
    document.sections.push_back(warnings_section(result));
    document.sections.push_back(ceilings_section(result.ceilings));
    document.sections.push_back(environment_section(result));
    document.sections.push_back(closing_section());
    return document;
}

Document summary_of(const ExplainedResult& explained) {
    const Result& result = explained.result();
    Document document{report_title(result), {environment_section(result)}};
    document.sections.front().title.clear();
    if (result.study)
        std::ranges::move(study_sections(explained, study_of(explained), Depth::summary),
                          std::back_inserter(document.sections));
    for (std::size_t i = 0; i < result.points.size() && !result.study; ++i)
        document.sections.push_back(point_summary(explained, i));
    const auto is_done = [](const Point& point) { return point.status == PointStatus::done; };
    const auto finished = std::ranges::count_if(result.points, is_done);
    if (finished > 1 && !result.study) {
        document.sections.push_back(points_section(explained, Depth::summary));
        std::ranges::move(series_sections(explained, Depth::summary), std::back_inserter(document.sections));
    }
    Section warnings{""};
    for (const std::string& warning : result.warnings) warnings.add(Paragraph{warning, Tone::warning});
    document.sections.push_back(std::move(warnings));
    if (finished > 0) document.sections.push_back(closing_section());
    return document;
}

}  // namespace kbench
