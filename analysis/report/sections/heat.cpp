// Layers by metric, each column on its own scale.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "analysis/report/sections/sections.h"
#include "analysis/table/table_query.h"

namespace kbench {
namespace {

/// Columns of `kbench table` that are percentages: their full colour is at 100.
constexpr std::string_view percentages[] = {"occ_achieved", "occ_theory", "sm_active", "tensor_pipe_active"};

/// The longest roof times of each layer's steps.
HeatColumn roof_column(const std::vector<std::string>& layers, const TimeBreakdown& breakdown) {
    HeatColumn column{"of roof %", "the longest roof times of its steps over the layer's time", 100, 1, {}};
    for (const std::string& layer : layers) {
        const auto group = std::ranges::find(breakdown.by_layer, layer, &BreakdownGroup::name);
        const bool is_known =
            group != breakdown.by_layer.end() && group->time_us > 0 && breakdown.roofs_unavailable.empty();
        column.values.push_back(is_known ? 100 * group->roof_times.useful_us / group->time_us : no_number);
    }
    return column;
}

}  // namespace

Section heat_section(const SectionContext& context) {
    const Point& point = context.point();
    const TimeBreakdown& breakdown = context.explanation().breakdown;
    Section section{"Layers by metric"};
    section.is_only_on_page = true;
    TableQuery query{&find_level("layer"), true, {}, {}, {}, {}};
    query.columns = {"layer",     "share", "occ_achieved",       "occ_theory",
                     "sm_active", "ipc",   "tensor_pipe_active", "dram_over_unfused"};
    const QueriedTable table = query_point(context.result(), context.index, query);
    HeatChart heat;
    for (const TableRow& row : table.rows)
        heat.rows.push_back(shown(table.columns.front(), table.columns.front().value(row)));
    std::vector<std::string> left_out;
    for (const Column& column : std::span(table.columns).subspan(1)) {
        HeatColumn shown{column.header, column.what, {}, column.decimals, {}};
        if (std::ranges::find(percentages, column.name) != std::end(percentages)) shown.most = 100;
        for (const TableRow& row : table.rows) {
            const Value value = column.value(row);
            const double* number = std::get_if<double>(&value);
            shown.values.push_back(number != nullptr ? *number : no_number);
        }
        if (std::ranges::all_of(shown.values, [](double value) { return std::isnan(value); }))
            left_out.push_back(shown.header);
        else
            heat.columns.push_back(std::move(shown));
        if (column.name == "share") heat.columns.push_back(roof_column(heat.rows, breakdown));
    }
    const std::string& counters = point.counters.unavailable;
    if (heat.rows.empty()) section.add(Paragraph{"the point has no steps", Tone::missing});
    if (!heat.rows.empty() && !left_out.empty())
        section.add(Paragraph{fmt::format("{}: {}", fmt::join(left_out, ", "),
                                          counters.empty() ? "not counted for this point" : counters),
                              Tone::missing});
    section.add(Chart{
        "",
        "Each column has its own scale: percentages to 100, the others to the largest. Counters are weighted by time.",
        std::move(heat)});
    return section;
}

}  // namespace kbench
