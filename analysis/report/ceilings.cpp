// `kbench ceilings` in each of its formats.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "analysis/machine/ceilings.h"
#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "analysis/table/table.h"
#include "models/base/format.h"

namespace kbench {
namespace {

struct CeilingColumn {
    TableColumn layout;
    std::string (*cell)(const Ceiling& ceiling);
};

/// Nothing for a name of another version.
const CeilingKind* kind_of(const Ceiling& ceiling) {
    const auto found = std::ranges::find(ceiling_kinds(), ceiling.name, &CeilingKind::name);
    return found == ceiling_kinds().end() ? nullptr : &*found;
}

constexpr int digits = 4;

std::string figure(const Quantity& quantity) {
    return quantity.value ? significant(*quantity.value, digits) : std::string("na");
}

/// What it is, and why there is no value where there is none.
std::string meaning(const Ceiling& ceiling) {
    const CeilingKind* kind = kind_of(ceiling);
    const std::string what(kind != nullptr ? kind->what : "not known to this version");
    return ceiling.value.value ? what : fmt::format("{}: unavailable, {}", what, one_line(ceiling.value.reason));
}

const CeilingColumn ceiling_columns[] = {
    {{"ceiling", Align::left}, [](const Ceiling& c) { return one_line(c.name); }},
    {{"value"}, [](const Ceiling& c) { return figure(c.value); }},
    {{"unit", Align::left},
     [](const Ceiling& c) {
         const CeilingKind* kind = kind_of(c);
         return std::string(kind != nullptr ? kind->unit : "");
     }},
    {{"interval"},
     [](const Ceiling& c) {
         return c.value.value ? fmt::format("{} to {}", significant(c.low, digits), significant(c.high, digits)) : "";
     }},
    {{"MHz"}, [](const Ceiling& c) { return c.clock_mhz > 0 ? fmt::format("{:.0f}", c.clock_mhz) : ""; }},
    {{"datasheet"}, [](const Ceiling& c) { return c.datasheet.value ? figure(c.datasheet) : ""; }},
    {{"share %"},
     [](const Ceiling& c) {
         const bool both = c.value.value && c.datasheet.value && *c.datasheet.value > 0;
         return both ? fmt::format("{:.1f}", 100 * *c.value.value / *c.datasheet.value) : "";
     }},
    {{"what", Align::left, 0, true}, meaning},
};

std::vector<std::string> cells(const Ceiling& ceiling) {
    std::vector<std::string> line;
    for (const CeilingColumn& column : ceiling_columns) line.push_back(column.cell(ceiling));
    return line;
}

/// Device, driver, when and how long.
std::string head(const CeilingRun& run) {
    std::string text = one_line(run.device);
    if (!run.driver.empty()) text += fmt::format(", driver {}", one_line(run.driver));
    return text + fmt::format(", measured {} in {}\n", one_line(run.measured_at), format_seconds(run.seconds));
}

/// Where the datasheet's values are from, each source once; or why there is none; a line each.
std::string sources(const CeilingRun& run, std::string_view bullet) {
    std::vector<std::string> seen;
    std::string text;
    const bool any = std::ranges::any_of(run.ceilings, [](const Ceiling& c) { return c.datasheet.value.has_value(); });
    for (const Ceiling& ceiling : run.ceilings) {
        const std::string& reason = ceiling.datasheet.reason;
        if (ceiling.datasheet.value.has_value() != any || reason.empty() ||
            std::ranges::find(seen, reason) != seen.end())
            continue;
        seen.push_back(reason);
        text += fmt::format("{}{}{}\n", bullet, any ? "" : "no datasheet: ", one_line(reason));
    }
    return text;
}

std::string write_text(const CeilingRun& run, std::size_t width) {
    std::vector<TableColumn> layout;
    for (const CeilingColumn& column : ceiling_columns) layout.push_back(column.layout);
    Table table(std::move(layout));
    for (const Ceiling& ceiling : run.ceilings) table.add_row(cells(ceiling));
    return head(run) + "\n" + table.text(0, width) + "\n" + sources(run, "");
}

std::string write_markdown(const CeilingRun& run) {
    std::vector<std::string> headers;
    std::string rule = "|";
    for (const CeilingColumn& column : ceiling_columns) {
        headers.push_back(column.layout.header);
        rule += column.layout.align == Align::right ? "---:|" : "---|";
    }
    std::string text = head(run) + "\n" + markdown_line(headers) + rule + "\n";
    for (const Ceiling& ceiling : run.ceilings) text += markdown_line(cells(ceiling));
    return text + "\n" + sources(run, "- ");
}

}  // namespace

std::string write_ceilings(const CeilingRun& run, CeilingFormat format, std::size_t width) {
    switch (format) {
        case CeilingFormat::json: return ceilings_to_json(run).dump(2) + "\n";
        case CeilingFormat::markdown: return write_markdown(run);
        case CeilingFormat::text: break;
    }
    return write_text(run, width);
}

}  // namespace kbench
