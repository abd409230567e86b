// The document of what-if.
#include "analysis/report/what_if.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/result/point_name.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

std::string shown_ceiling(const std::string& ceiling) { return ceiling.empty() ? "none" : ceiling; }

Rows rows_of(std::string_view title, const std::vector<WhatIfGroup>& groups, bool by_ceiling) {
    Rows rows{
        {TableColumn{.header = std::string(title), .align = Align::left, .shortens = true, .is_name = !by_ceiling},
         figures("steps"), figures("here ms"), figures("expected ms"), figures("low"), figures("high"),
         figures("ratio")}};
    if (!by_ceiling) {
        rows.columns.push_back({"roof there", Align::left});
        rows.columns.push_back({"share"});
    }
    for (const WhatIfGroup& group : groups) {
        std::vector<std::string> row = {
            by_ceiling ? shown_ceiling(group.name) : group.name,
            fmt::to_string(group.steps),
            significant(group.here_ms),
            significant(group.there_ms.value),
            significant(group.there_ms.low),
            significant(group.there_ms.high),
            group.here_ms > 0 ? significant(group.there_ms.value / group.here_ms) : std::string("-")};
        if (!by_ceiling) {
            row.push_back(shown_ceiling(group.ceiling_there));
            row.push_back(percent(group.ceiling_there_share));
        }
        rows.rows.push_back(std::move(row));
    }
    return rows;
}

std::string question(const WhatIf& answer) {
    return fmt::format("{}: {} instead of {}", sentence_name(*answer.point), answer.target, answer.source);
}

std::string headline(const WhatIf& answer) {
    const std::string gaps =
        answer.gaps_ms > 1e-6 ? fmt::format("; {} of both are gaps", format_ms(answer.gaps_ms)) : "";
    return fmt::format("{} expected there ({} to {}; {}), {} here, {} times as long{}.",
                       format_ms(answer.there_ms.value), format_ms(answer.there_ms.low),
                       format_ms(answer.there_ms.high), name(answer.origin), format_ms(answer.here_ms),
                       significant(answer.there_ms.value / answer.here_ms), gaps);
}

std::string check_text(const WhatIfCheck& check) {
    if (!check.unavailable.empty()) return fmt::format("Not compared with a measurement: {}.", check.unavailable);
    return fmt::format("Measured there: {}; the expectation is {:.1f} % {}, the measurement {} the interval.",
                       format_ms(check.measured_ms), std::abs(check.error) * 100,
                       check.error < 0 ? "too short" : "too long", check.inside ? "inside" : "outside");
}

Section section_of(const CheckedWhatIf& point, const std::vector<std::string>& shared) {
    const WhatIf& answer = point.answer;
    const std::string title = "What if: " + question(answer);
    if (!answer.unavailable.empty()) return missing_section(title, answer.unavailable);
    Section section{title, {Paragraph{headline(answer)}}};
    if (point.check) section.add(Paragraph{check_text(*point.check)});
    section.add(rows_of("longest roof time there", answer.by_ceiling, true));
    section.add(Section{"By op kind", {rows_of("op kind", answer.by_op, false)}});
    section.add(Section{"By layer", {rows_of("layer", answer.by_layer, false)}});
    Bullets own{answer.assumptions};
    std::erase_if(own.items, [&](const std::string& text) { return contains(shared, text); });
    section.add(Section{"Assumptions of this point alone", {std::move(own)}});
    return section;
}

/// In the order of the first answer.
std::vector<std::string> shared_assumptions(std::span<const CheckedWhatIf> points) {
    std::optional<std::vector<std::string>> shared;
    for (const auto& [answer, check] : points) {
        if (!answer.unavailable.empty()) continue;
        if (!shared) shared = answer.assumptions;
        const auto& own = answer.assumptions;
        std::erase_if(*shared, [&own](const std::string& text) { return !contains(own, text); });
    }
    return shared.value_or(std::vector<std::string>{});
}

nlohmann::ordered_json json_of(const CheckedWhatIf& point) {
    const WhatIf& answer = point.answer;
    nlohmann::ordered_json json{{"point", point_name(*answer.point)},
                                {"source", answer.source},
                                {"target", answer.target},
                                {"unavailable", answer.unavailable},
                                {"here_ms", answer.here_ms},
                                {"expected_ms", answer.there_ms.value},
                                {"low_ms", answer.there_ms.low},
                                {"high_ms", answer.there_ms.high},
                                {"check", nullptr},
                                {"tested", tested_text(answer.point->backend())}};
    if (point.check)
        json["check"] = {{"unavailable", point.check->unavailable},
                         {"measured_ms", point.check->measured_ms},
                         {"error", point.check->error},
                         {"inside", point.check->inside}};
    return json;
}

}  // namespace

Document what_if_document(std::span<const CheckedWhatIf> points) {
    Document document{"What if", {}};
    const std::vector<std::string> shared = shared_assumptions(points);
    for (const CheckedWhatIf& point : points) document.sections.push_back(section_of(point, shared));
    if (!shared.empty())
        document.sections.push_back(
            {"What this rests on", {Paragraph{tested_text(points.front().answer.point->backend())}, Bullets{shared}}});
    return document;
}

nlohmann::ordered_json what_if_json(std::span<const CheckedWhatIf> points) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const CheckedWhatIf& point : points) list.push_back(json_of(point));
    return list;
}

}  // namespace kbench
