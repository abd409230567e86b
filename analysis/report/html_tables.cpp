// The report's tables, from the columns of `kbench table`, and the heat map, from those by layer.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "analysis/explain/breakdown.h"
#include "analysis/report/html_parts.h"

namespace kbench {
namespace {

constexpr const char* step_columns[] = {"step",
                                        "layer",
                                        "op",
                                        "time_us",
                                        "share",
                                        "dependent_steps",
                                        "dependent_us",
                                        "provider",
                                        "kernel",
                                        "params",
                                        "tflop_per_s",
                                        "gb_per_s",
                                        "flops",
                                        "bytes",
                                        "dram_bytes",
                                        "dram_gb_per_s",
                                        "dram_over_streaming",
                                        "l2_over_streaming",
                                        "occ_theory",
                                        "occ_achieved",
                                        "sm_active",
                                        "ipc",
                                        "tensor_pipe_active",
                                        "tc",
                                        "executed_over_model",
                                        "mismatch",
                                        "gap_us",
                                        "event_low_us",
                                        "event_high_us",
                                        "n",
                                        "implementation",
                                        "absorbs"};
constexpr const char* kernel_columns[] = {"step",       "sub",          "layer",        "op",          "time_us",
                                          "share",      "gap_us",       "kernel",       "grid",        "block",
                                          "regs",       "smem_static",  "smem_dynamic", "local_bytes", "cluster",
                                          "occ_theory", "occ_achieved", "occ_limiter",  "waves",       "lost_last_wave",
                                          "occ_hint",   "stream"};

ReportJson cell(const Value& value) {
    if (const auto* none = std::get_if<NoValue>(&value))
        return *none == NoValue::na ? ReportJson() : ReportJson(name(*none));
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
    return report_number(std::get<double>(value));
}

ReportJson column_data(const Column& column) {
    return {{"name", column.name},
            {"header", column.header},
            {"unit", column.unit},
            {"what", column.what},
            {"number", column.align == Align::right},
            {"decimals", column.decimals}};
}

/// Those of `names` that are a column or one of `counters`: what was not counted has no column.
std::vector<std::string> existing(std::span<const char* const> names, std::span<const CountedMetric> counters) {
    std::vector<std::string> found;
    for (const char* wanted : names)
        if (std::ranges::find(columns(), wanted, &Column::name) != columns().end() ||
            std::ranges::find(counters, wanted, &CountedMetric::name) != counters.end())
            found.emplace_back(wanted);
    return found;
}

/// Rows of cells, with columns that may be added before empty ones are dropped.
struct Cells {
    std::vector<ReportJson> columns;
    std::vector<std::vector<ReportJson>> rows;

    /// The last `count` columns come to stand right behind the one called `name`.
    void move_last_behind(std::ptrdiff_t count, std::string_view name) {
        const auto is_it = [name](const ReportJson& column) { return column["name"].get<std::string>() == name; };
        const auto behind = std::ranges::find_if(columns, is_it) - columns.begin() + 1;
        std::rotate(columns.begin() + behind, columns.end() - count, columns.end());
        for (auto& row : rows) std::rotate(row.begin() + behind, row.end() - count, row.end());
    }

    ReportJson without_empty_columns() const {
        ReportJson kept = ReportJson::array(), left_out = kept, lines = kept;
        std::vector<std::size_t> positions;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const bool holds = std::ranges::any_of(rows, [i](const auto& row) { return !row[i].is_null(); });
            if (holds) positions.push_back(i);
            (holds ? kept : left_out).push_back(holds ? columns[i] : columns[i]["header"]);
        }
        for (const auto& row : rows) {
            ReportJson line = ReportJson::array();
            for (const std::size_t i : positions) line.push_back(row[i]);
            lines.push_back(std::move(line));
        }
        return {{"columns", std::move(kept)}, {"left_out", std::move(left_out)}, {"rows", std::move(lines)}};
    }
};

Cells queried(const ResultFile& file, std::size_t point_index, std::string_view level,
              std::span<const char* const> names, bool fold = false) {
    TableQuery query;
    query.level = &find_level(level);
    query.fold = fold;
    query.point = point_index;
    query.columns = existing(names, counters_of(file.result));
    const QueriedTable table = query_table({&file, 1}, query);
    Cells cells;
    for (const Column& column : table.columns) cells.columns.push_back(column_data(column));
    for (const TableRow& row : table.rows) {
        std::vector<ReportJson>& line = cells.rows.emplace_back();
        for (const Column& column : table.columns) line.push_back(cell(column.value(row)));
    }
    return cells;
}

/// Three more columns of the table of steps: the binding roof, its share of the step's time, the verdict.
void add_explanation(Cells& cells, const Point& point, const Explanation& explanation) {
    const std::vector<StepLedger>& steps = explanation.ledger.steps;
    const std::vector<Verdict>& verdicts = explanation.verdicts.steps;
    const auto add = [&cells](const char* header, const char* unit, const char* what, bool number) {
        cells.columns.push_back({{"name", header},
                                 {"header", header},
                                 {"unit", unit},
                                 {"what", what},
                                 {"number", number},
                                 {"decimals", 1}});
        for (auto& row : cells.rows) row.emplace_back();
    };
    add("binding roof", "", "the roof that demands the most time of the step", false);
    add("of roof %", "%", "share of the step's time that the binding roof demands", true);
    add("verdict", "", "what binds the step", false);
    const std::size_t width = cells.columns.size();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const StepLedger& step = steps[i];
        const auto at = static_cast<std::size_t>(step.step == nullptr ? -1 : step.step - point.steps.data());
        if (at >= cells.rows.size()) continue;
        std::vector<ReportJson>& row = cells.rows[at];
        if (const Demand* binding = step.binding()) {
            row[width - 3] = binding->roof.ceiling;
            row[width - 2] = report_number(100 * step.roof_share());
        }
        if (verdicts.size() == steps.size()) row[width - 1] = name(verdicts[i].bound);
    }
}

/// The number of the step (its position) of each row of the table of kernels, for the way from a row to a mark.
ReportJson kernel_steps(const Point& point) {
    ReportJson list = ReportJson::array();
    for (std::size_t i = 0; i < point.steps.size(); ++i)
        for (std::size_t k = 0; k < point.steps[i].kernels.size(); ++k) list.push_back(i);
    return list;
}

}  // namespace

ReportJson tables_data(const ResultFile& file, std::size_t point_index, const Point& point,
                       const Explanation& explanation) {
    Cells steps = queried(file, point_index, "step", step_columns);
    add_explanation(steps, point, explanation);
    steps.move_last_behind(3, "share");
    ReportJson kernels = queried(file, point_index, "kernel", kernel_columns).without_empty_columns();
    kernels["steps"] = kernel_steps(point);
    return {{"step_table", steps.without_empty_columns()}, {"kernel_table", std::move(kernels)}};
}

ReportJson heat_data(const ResultFile& file, std::size_t point_index, const Explanation& explanation) {
    static constexpr const char* names[] = {"layer",     "share", "occ_achieved",       "occ_theory",
                                            "sm_active", "ipc",   "tensor_pipe_active", "dram_over_streaming"};
    Cells cells = queried(file, point_index, "layer", names, true);
    const ReportJson of_roof = {
        {"name", "of_roof"}, {"header", "of roof %"},
        {"unit", "%"},       {"what", "share of the layer's time that its binding roofs demand"},
        {"number", true},    {"decimals", 1}};
    cells.columns.push_back(of_roof);
    for (auto& row : cells.rows) {
        ReportJson share;
        if (row[0].is_string())
            for (const LedgerGroup& group : explanation.ledger.by_layer)
                if (group.name == row[0].get_ref<const std::string&>() && group.time_us > 0 &&
                    explanation.ledger.roofs_unavailable.empty())
                    share = report_number(100 * group.demands.useful_us / group.time_us);
        row.push_back(std::move(share));
    }
    cells.move_last_behind(1, "layer");
    ReportJson data = cells.without_empty_columns();
    data["unavailable"] = cells.rows.empty() ? "no steps" : file.result.points[point_index].counters.unavailable;
    return data;
}

}  // namespace kbench
