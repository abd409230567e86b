// The text of what-if, for terminals and as Markdown, from the same sentences and tables.
#include "analysis/report/what_if.h"

#include <fmt/format.h>

#include <cmath>

#include "analysis/result/point_name.h"
#include "analysis/table/table.h"
#include "models/base/format.h"

namespace kbench {
namespace {

struct Section {
    std::string title;
    const std::vector<WhatIfGroup>& groups;
    bool by_ceiling;
};

std::vector<Section> sections(const WhatIf& answer) {
    return {{"binding roof there", answer.by_ceiling, true},
            {"op kind", answer.by_op, false},
            {"layer", answer.by_layer, false}};
}

std::string shown_ceiling(const std::string& ceiling) { return ceiling.empty() ? "none" : ceiling; }

Table table_of(const Section& section) {
    std::vector<TableColumn> columns = {
        {section.title, Align::left, 0, true}, {"steps"}, {"here ms"}, {"expected ms"}, {"low"}, {"high"}, {"ratio"}};
    if (!section.by_ceiling) columns.insert(columns.end(), {{"roof there", Align::left}, {"share"}});
    Table table(std::move(columns));
    for (const WhatIfGroup& group : section.groups) {
        std::vector<std::string> row = {
            section.by_ceiling ? shown_ceiling(group.name) : one_line(group.name),
            fmt::to_string(group.steps),
            significant(group.here_ms),
            significant(group.there_ms.value),
            significant(group.there_ms.low),
            significant(group.there_ms.high),
            group.here_ms > 0 ? significant(group.there_ms.value / group.here_ms) : std::string("-")};
        if (!section.by_ceiling) {
            row.push_back(shown_ceiling(group.ceiling_there));
            row.push_back(fmt::format("{:.0f} %", group.ceiling_there_share * 100));
        }
        table.add_row(std::move(row));
    }
    return table;
}

std::string milliseconds(double ms) {
    const TimeUnit unit = time_unit(ms);
    return fmt::format("{} {}", significant(ms * unit.per_ms), unit.name);
}

std::string question(const WhatIf& answer) {
    return one_line(fmt::format("{}: {} instead of {}", sentence_name(*answer.point), answer.target, answer.source));
}

std::string headline(const WhatIf& answer) {
    const std::string gaps =
        answer.gaps_ms > 1e-6 ? fmt::format("; {} of both are gaps", milliseconds(answer.gaps_ms)) : "";
    return fmt::format("{} expected there ({} to {}; {}), {} here, {} times as long{}.",
                       milliseconds(answer.there_ms.value), milliseconds(answer.there_ms.low),
                       milliseconds(answer.there_ms.high), name(answer.origin), milliseconds(answer.here_ms),
                       significant(answer.there_ms.value / answer.here_ms), gaps);
}

std::string check_text(const WhatIfCheck& check) {
    if (!check.unavailable.empty())
        return one_line(fmt::format("Not compared with a measurement: {}.", check.unavailable));
    return fmt::format("Measured there: {}; the expectation is {:.1f} % {}, the measurement {} the interval.",
                       milliseconds(check.measured_ms), std::abs(check.error) * 100,
                       check.error < 0 ? "too short" : "too long", check.inside ? "inside" : "outside");
}

}  // namespace

std::string write_what_if(const WhatIf& answer, std::size_t width, const WhatIfCheck* check) {
    std::string text = fmt::format("what if: {}\n", question(answer));
    if (!answer.unavailable.empty()) return text + wrap("  unavailable: ", one_line(answer.unavailable), width);
    text += wrap("  ", headline(answer), width);
    if (check != nullptr) text += wrap("  ", check_text(*check), width);
    for (const Section& section : sections(answer)) text += "\n" + table_of(section).text(2, width);
    text += "\n  assumptions\n";
    for (const std::string& assumption : answer.assumptions) text += wrap("    - ", one_line(assumption), width);
    return text;
}

std::string write_what_if_markdown(const WhatIf& answer, const WhatIfCheck* check) {
    std::string text = fmt::format("### What if: {}\n\n", escape_markdown(question(answer)));
    if (!answer.unavailable.empty())
        return text + fmt::format("Unavailable: {}.\n", escape_markdown(answer.unavailable));
    text += escape_markdown(headline(answer)) + '\n';
    if (check != nullptr) text += '\n' + escape_markdown(check_text(*check)) + '\n';
    for (const Section& section : sections(answer)) text += '\n' + table_of(section).markdown();
    text += "\nAssumptions:\n\n";
    for (const std::string& assumption : answer.assumptions) text += fmt::format("- {}\n", escape_markdown(assumption));
    return text;
}

}  // namespace kbench
