// Rows from results: steps are placed, grouped, sorted and cut.
#include "analysis/table_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/breakdown.h"
#include "models/error.h"

namespace kbench {
namespace {

std::optional<double> total_time_us(const Point& point) {
    double total = 0;
    for (const StepResult& step : point.steps) {
        if (!step.time_us) return std::nullopt;
        total += step.time_us->median;
    }
    return total;
}

void append_rows(std::string_view file, const Result& result, std::size_t point_index, const TableQuery& query,
                 std::vector<TableRow>& rows) {
    const Point& point = result.points[point_index];
    const std::optional<double> time_us = total_time_us(point);
    const auto new_row = [&]() -> TableRow& {
        rows.push_back({file, rows.size(), point_index, &point, {}, query.fold, time_us});
        return rows.back();
    };
    if (point.steps.empty() && query.level->keeps_empty_points) new_row();

    std::map<std::string, std::size_t> row_of_key;
    std::int64_t ops = 0;
    for (const StepResult& step : point.steps) {
        const std::optional<std::string> key = query.level->key(step, query.fold);
        const auto found = key ? row_of_key.find(*key) : row_of_key.end();
        if (key && found == row_of_key.end()) row_of_key.emplace(*key, rows.size());
        TableRow& row = found == row_of_key.end() ? new_row() : rows[found->second];
        row.steps.push_back({&step, ops});
        if (step.direction == Direction::fwd) ops += static_cast<std::int64_t>(step.absorbs.size());
    }
}

/// Whether `a` stands before `b`. Cells without a value stand last either way.
bool before(const Value& a, const Value& b, bool descending) {
    const bool a_is_none = std::holds_alternative<NoValue>(a), b_is_none = std::holds_alternative<NoValue>(b);
    if (a_is_none || b_is_none) return !a_is_none && b_is_none;
    return descending ? b < a : a < b;
}

void sort_rows(std::vector<TableRow>& rows, const SortBy& sort) {
    std::vector<std::pair<Value, TableRow>> keyed;
    for (TableRow& row : rows) {
        Value value = sort.column->value(row);
        keyed.emplace_back(std::move(value), std::move(row));
    }
    std::ranges::stable_sort(keyed,
                             [&](const auto& a, const auto& b) { return before(a.first, b.first, sort.descending); });
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = std::move(keyed[i].second);
}

}  // namespace

std::span<const TableLevel> table_levels() {
    using Key = std::optional<std::string>;
    static const std::vector<TableLevel> levels = {
        {.name = "step",
         .what = "one step",
         .default_columns = {"idx", "dir", "sub", "mod", "op", "kernel", "params", "sil"},
         .key = [](const StepResult&, bool) { return Key(); }},
        {.name = "op",
         .what = "all steps of one op kind",
         .default_columns = {"op", "mod", "steps", "time_us", "share", "tflop_per_s", "gb_per_s"},
         .key = [](const StepResult& step, bool) { return Key(step.op); }},
        {.name = "layer",
         .what = "all steps of one layer",
         .default_columns = {"layer", "op", "steps", "time_us", "share", "tflop_per_s", "gb_per_s"},
         .key = [](const StepResult& step, bool fold) { return Key(fold ? layer_group(step.layer) : step.layer); },
         .can_fold = true},
        {.name = "point",
         .what = "all steps of one point",
         .default_columns = {"point", "model", "backend", "precision", "batch", "seq_len", "status", "latency_ms",
                             "steps", "time_us", "tflop_per_s", "gb_per_s"},
         .key = [](const StepResult&, bool) { return Key(""); },
         .keeps_empty_points = true},
    };
    return levels;
}

const TableLevel& find_level(std::string_view wanted) {
    std::string names;
    for (const TableLevel& level : table_levels()) {
        if (level.name == wanted) return level;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", level.name);
    }
    throw UsageError(fmt::format("--by '{}': must be one of {}", wanted, names));
}

SortBy parse_sort(std::string_view text) {
    const std::size_t colon = text.find(':');
    const Column& column = find_column(text.substr(0, colon));
    if (colon == std::string_view::npos) return {&column, column.align == Align::right};
    const std::string_view order = text.substr(colon + 1);
    if (order != "asc" && order != "desc")
        throw UsageError(fmt::format("--sort '{}': the order must be asc or desc, not '{}'", text, order));
    return {&column, order == "desc"};
}

std::vector<const Column*> find_columns(std::span<const std::string> names) {
    std::vector<const Column*> found;
    if (names.size() == 1 && names.front() == "all") {
        for (const Column& column : columns()) found.push_back(&column);
        return found;
    }
    for (const std::string& name : names) found.push_back(&find_column(name));
    return found;
}

QueriedTable query_table(std::span<const ResultFile> files, const TableQuery& query) {
    if (query.fold && !query.level->can_fold)
        throw UsageError(fmt::format("--fold folds layers: it needs --by layer, not --by {}", query.level->name));
    QueriedTable table;
    table.columns = query.columns.empty() ? find_columns(query.level->default_columns) : query.columns;
    for (const ResultFile& file : files) {
        const std::size_t points = file.result.points.size();
        if (query.point && *query.point >= points)
            throw UsageError(
                points == 0 ? fmt::format("--point {}: {} has no points", *query.point, file.path)
                            : fmt::format("--point {}: {} has points 0 to {}", *query.point, file.path, points - 1));
        for (std::size_t i = 0; i < points; ++i)
            if (!query.point || *query.point == i) append_rows(file.path, file.result, i, query, table.rows);
    }
    if (query.sort) sort_rows(table.rows, *query.sort);
    if (query.top && *query.top < table.rows.size()) table.rows.resize(*query.top);
    return table;
}

std::vector<TableRow> step_rows(const Result& result) {
    std::vector<TableRow> rows;
    for (std::size_t i = 0; i < result.points.size(); ++i) append_rows({}, result, i, {}, rows);
    return rows;
}

}  // namespace kbench
