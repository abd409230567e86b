#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "analysis/facts/counters.h"
#include "analysis/report/sections/sections.h"
#include "analysis/table/table_query.h"

namespace kbench {
namespace {

constexpr std::size_t shown_layers = 8;

/// A column of `kbench table`, under a header that suits this table.
struct HardwareColumn {
    std::string_view name, summary_header, header;  ///< not there where its header is empty
    int droppable = 0;
    bool counted = false;  ///< needs counters
};
constexpr HardwareColumn hardware_columns[] = {
    {"layer", "layer", "layer"},
    {"kernel", "kernel", "kernel", 1},
    {"grid", "", "grid"},
    {"block", "", "block"},
    {"occ_theory", "theory %", "theoretical % (derived)"},
    {"occ_achieved", "occ %", "achieved % (measured)"},
    {"occ_limiter", "limited by", "limited by"},
    {"waves", "", "waves (derived)"},
    {"occ_hint", "", "what would raise it (derived)"},
    {"ipc", "ipc", "", 2, true},
    {"tensor_pipe_active", "tensor %", "", 0, true},
    {"dram_gb_per_s", "DRAM GB/s", "", 0, true},
    {"dram_over_unfused", "DRAM x", "", 0, true},
};

/// Limiters in few letters.
std::string abbreviated(std::string text) {
    for (const auto& [word, few] : {std::pair{"registers", "regs"}, std::pair{"shared memory", "smem"}})
        if (const std::size_t at = text.find(word); at != text.npos) text.replace(at, std::strlen(word), few);
    return text;
}

/// Whether all that the row's steps did are copies and fills, which have no blocks.
bool only_moves(const TableRow& row) {
    return std::ranges::all_of(row.steps, [](const PlacedStep& placed) {
        const std::vector<KernelResult>& kernels = placed.step->kernels;
        return !kernels.empty() &&
               std::ranges::all_of(kernels, [](const KernelResult& kernel) { return kernel.moved_bytes.has_value(); });
    });
}

/// In how many steps ranges of the counters were much longer than the kernels; empty where in none.
std::string withheld_text(const Point& point) {
    std::size_t steps = 0;
    double us = 0, all_us = 0;
    for (const StepResult& step : point.steps) {
        const double step_us = step.device_us().value_or(0);
        all_us += step_us;
        if (elapsed_withheld(step).empty()) continue;
        ++steps;
        us += step_us;
    }
    if (steps == 0) return {};
    return fmt::format(
        "In {} of {} steps, {:.0f} % of their time, the counters' range was longer than the kernels: figures per elapsed "
        "cycle are withheld there; bytes, instructions and active cycles hold.",
        steps, point.steps.size(), all_us > 0 ? 100 * us / all_us : 0);
}

}  // namespace

Section hardware_section(const SectionContext& context) {
    const Point& point = context.point();
    const bool is_summary = !context.is_full();
    Section section{is_summary ? "What the hardware did (DRAM x: its bytes over the unfused traffic)" : "Occupancy"};
    const auto has_kernels = [](const StepResult& step) { return !step.kernels.empty(); };
    const bool recorded = std::ranges::any_of(point.steps, has_kernels);
    const auto has_tensor = [](const CountedMetric& metric) { return metric.name == "tensor_pipe_active"; };
    const bool counted = std::ranges::any_of(point.counters.metrics, has_tensor);
    if (point.backend() != "cuda") return section;
    if (is_summary ? point.activity.runs == 0 && !counted : !recorded) return section;
    TableQuery query;
    query.level = &find_level("layer");
    query.fold = true;
    query.sort = SortBy{"time_us", true};
    if (is_summary) query.top = shown_layers;
    Rows rows;
    for (const HardwareColumn& column : hardware_columns) {
        const std::string_view header = is_summary ? column.summary_header : column.header;
        if (header.empty() || (column.counted && !counted)) continue;
        query.columns.emplace_back(column.name);
        const bool is_name = column.name == "layer" || column.name == "kernel";
        rows.columns.push_back({std::string(header), find_column(column.name, point.counters.metrics).align,
                                column.droppable, column.name == "kernel", is_name});
    }
    const QueriedTable found = query_point(context.result(), context.index, query);
    for (const TableRow& row : found.rows) {
        if (only_moves(row)) continue;
        std::vector<std::string> cells;
        for (const Column& column : found.columns) {
            const Value value = column.value(row);
            const std::string cell = value == Value(NoValue::na) ? "" : shown(column, value);
            cells.push_back(is_summary && column.name == "occ_limiter" ? abbreviated(cell) : cell);
        }
        rows.rows.push_back(std::move(cells));
    }
    section.add(std::move(rows));
    if (const std::string withheld = withheld_text(point); !withheld.empty()) section.add(Paragraph{withheld});
    const auto has_achieved = [](const StepResult& step) { return counters_of(step).achieved_occupancy.has_value(); };
    if (!is_summary && std::ranges::none_of(point.steps, has_achieved))
        section.add(Paragraph{"Achieved occupancy: unavailable: the counter achieved_occupancy was not read."});
    return section;
}

}  // namespace kbench
