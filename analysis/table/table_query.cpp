// Rows from results: steps are placed, grouped, sorted and cut.
#include "analysis/table/table_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/facts/point_facts.h"
#include "kbench/error.h"
#include "models/base/nearest.h"

namespace kbench {
namespace {

/// Numbers of ops that the step takes, see PlacedStep.
std::int64_t forward_ops(const StepResult& step) {
    return step.direction == Direction::fwd && !step.is_recomputed() ? static_cast<std::int64_t>(step.absorbs.size())
                                                                     : 0;
}

std::optional<double> total_time_us(const Point& point) {
    double total = 0;
    for (const StepResult& step : point.steps) {
        const std::optional<double> time_us = step.device_us();
        if (!time_us) return std::nullopt;
        total += *time_us;
    }
    return total;
}

double kernels_time_us(const Point& point) {
    double total = 0;
    for (const StepResult& step : point.steps)
        for (const KernelResult& kernel : step.kernels) total += kernel.time_us;
    return total;
}

void append_rows(std::string_view file, const Result& result, std::size_t point_index, const TableQuery& query,
                 std::vector<TableRow>& rows) {
    const TableLevel& level = *query.level;
    TableRow blank;
    blank.file = file;
    blank.point_index = point_index;
    blank.point = &result.points[point_index];
    blank.folded = query.fold;
    blank.point_time_us = level.rows_are_kernels ? kernels_time_us(*blank.point) : total_time_us(*blank.point);
    blank.result = &result;
    blank.explanation = std::make_shared<LazyExplanation>(result, *blank.point);
    const auto new_row = [&]() -> TableRow& {
        blank.index = rows.size();
        return rows.emplace_back(blank);
    };
    if (blank.point->steps.empty() && level.keeps_empty_points) new_row();

    std::map<std::string, std::size_t> row_of_key;
    std::int64_t ops = 0;
    for (const StepResult& step : blank.point->steps) {
        const PlacedStep placed{&step, std::exchange(ops, ops + forward_ops(step))};
        if (level.rows_are_kernels) {
            for (std::size_t i = 0; i < step.kernels.size(); ++i) {
                TableRow& row = new_row();
                row.steps = {placed};
                row.kernel = &step.kernels[i];
                row.kernel_number = i;
            }
            continue;
        }
        const std::optional<std::string> key = level.key(step, query.fold);
        const auto found = key ? row_of_key.find(*key) : row_of_key.end();
        if (key && found == row_of_key.end()) row_of_key.emplace(*key, rows.size());
        TableRow& row = found == row_of_key.end() ? new_row() : rows[found->second];
        row.steps.push_back(placed);
    }
}

/// Whether `a` stands before `b`. Cells without a value stand last either way.
bool before(const Value& a, const Value& b, bool descending) {
    const bool a_is_none = std::holds_alternative<NoValue>(a), b_is_none = std::holds_alternative<NoValue>(b);
    if (a_is_none || b_is_none) return !a_is_none && b_is_none;
    return descending ? b < a : a < b;
}

void sort_rows(std::vector<TableRow>& rows, const Column& column, std::optional<bool> wish) {
    const bool descending = wish.value_or(column.align == Align::right);
    std::vector<std::pair<Value, TableRow>> keyed;
    for (TableRow& row : rows) {
        Value value = column.value(row);
        keyed.emplace_back(std::move(value), std::move(row));
    }
    std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) { return before(a.first, b.first, descending); });
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = std::move(keyed[i].second);
}

/// The axes on which the points of a result may differ, and what came of each.
std::vector<std::string> point_columns() {
    std::vector<std::string> names{"point"};
    for (const Axis* axis : axes_in_tables())
        if (axis->order != 0) names.emplace_back(axis->column);
    for (const char* figure : {"status", "latency_ms", "tokens_per_s", "point_tflop_per_s", "roof_share", "verdict"})
        names.emplace_back(figure);
    return names;
}

void add_counters(const Result& result, std::vector<CountedMetric>& counters) {
    for (const Point& point : result.points)
        for (const CountedMetric& metric : point.counters.metrics)
            if (std::ranges::find(counters, metric.name, &CountedMetric::name) == counters.end())
                counters.push_back(metric);
}

void order_rows(const TableQuery& query, std::span<const CountedMetric> counters, std::vector<TableRow>& rows) {
    if (query.sort) sort_rows(rows, find_column(query.sort->column, counters), query.sort->descending);
    if (query.top && *query.top < rows.size()) rows.resize(*query.top);
}

/// Whether any point of the files has a value for a column of `point_columns`; the others mean nothing for them.
bool means_something(const Column& column, std::span<const ResultFile> files) {
    const auto any_point = [&](auto&& holds) {
        return std::ranges::any_of(
            files, [&](const ResultFile& file) { return std::ranges::any_of(file.result.points, holds); });
    };
    const auto axis = std::ranges::find(axes(), column.name, &Axis::column);
    if (axis != axes().end())
        return any_point([&](const Point& point) { return point.axes.find(axis->name) != nullptr; });
    if (column.name != "tokens_per_s") return true;
    return any_point([](const Point& point) { return point.end_to_end && point.end_to_end->tokens_per_s; }) ||
           !any_point([](const Point& point) { return point.end_to_end.has_value(); });
}

}  // namespace

std::span<const TableLevel> table_levels() {
    using Key = std::optional<std::string>;
    static const std::vector<TableLevel> table = {
        {.name = "kernel",
         .what = "one kernel: its own time and launch, all else its step's; counters where it is its step's only one",
         .default_columns = {"idx", "dir", "sub", "mod", "op", "kernel", "params", "sil"},
         .key = [](const StepResult&, bool) { return Key(); },
         .rows_are_kernels = true},
        {.name = "step",
         .what = "one step",
         .default_columns = {"idx", "dir", "sub", "mod", "op", "kernel", "params", "sil"},
         .key = [](const StepResult&, bool) { return Key(); }},
        {.name = "op",
         .what = "all steps of one op kind",
         .default_columns = {"op", "mod", "steps", "time_us", "share", "tflop_per_s", "gb_per_s"},
         .key = [](const StepResult& step, bool) { return Key(op_name(step)); }},
        {.name = "layer",
         .what = "all steps of one layer",
         .default_columns = {"layer", "op", "steps", "time_us", "share", "tflop_per_s", "gb_per_s"},
         .key = [](const StepResult& step, bool fold) { return Key(fold ? layer_group(step.layer) : step.layer); },
         .can_fold = true},
        {.name = "point",
         .what = "all steps of one point",
         .default_columns = point_columns(),
         .key = [](const StepResult&, bool) { return Key(""); },
         .keeps_empty_points = true},
    };
    return table;
}

const TableLevel& find_level(std::string_view wanted) {
    const auto found = std::ranges::find(table_levels(), wanted, &TableLevel::name);
    if (found != table_levels().end()) return *found;
    throw UsageError(fmt::format("--by '{}': {}", wanted, nearest_name(wanted, table_levels(), &TableLevel::name)));
}

SortBy parse_sort(std::string_view text) {
    const std::size_t colon = text.find(':');
    std::string column(text.substr(0, colon));
    if (colon == std::string_view::npos) return {std::move(column), std::nullopt};
    const std::string_view order = text.substr(colon + 1);
    if (order != "asc" && order != "desc")
        throw UsageError(fmt::format("--sort '{}': the order must be asc or desc, not '{}'", text, order));
    return {std::move(column), order == "desc"};
}

std::vector<Column> find_columns(std::span<const std::string> names, std::span<const CountedMetric> counters) {
    std::vector<Column> found;
    if (names.size() == 1 && names.front() == "all") {
        found.assign(columns().begin(), columns().end());
        for (const CountedMetric& metric : counters)
            if (std::ranges::find(columns(), metric.name, &Column::name) == columns().end())
                found.push_back(counter_column(metric));
        return found;
    }
    for (const std::string& name : names) found.push_back(find_column(name, counters));
    return found;
}

QueriedTable query_table(std::span<const ResultFile> files, const TableQuery& query) {
    if (query.fold && !query.level->can_fold)
        throw UsageError(fmt::format("--fold folds layers: it needs --by layer, not --by {}", query.level->name));
    QueriedTable table;
    std::vector<CountedMetric> counters;
    for (const ResultFile& file : files) add_counters(file.result, counters);
    table.columns = find_columns(query.columns.empty() ? query.level->default_columns : query.columns, counters);
    if (query.columns.empty())
        std::erase_if(table.columns, [&](const Column& column) { return !means_something(column, files); });
    for (const ResultFile& file : files) {
        const std::size_t points = file.result.points.size();
        if (query.point && *query.point >= points)
            throw UsageError(
                points == 0 ? fmt::format("--point {}: {} has no points", *query.point, file.path)
                            : fmt::format("--point {}: {} has points 0 to {}", *query.point, file.path, points - 1));
        for (std::size_t i = 0; i < points; ++i)
            if (!query.point || *query.point == i) append_rows(file.path, file.result, i, query, table.rows);
    }
    order_rows(query, counters, table.rows);
    return table;
}

QueriedTable query_point(const Result& result, std::size_t point, TableQuery query) {
    const std::vector<CountedMetric> counters = counters_of(result);
    std::erase_if(query.columns, [&](const std::string& wanted) {
        return std::ranges::find(columns(), wanted, &Column::name) == columns().end() &&
               std::ranges::find(counters, wanted, &CountedMetric::name) == counters.end();
    });
    QueriedTable table{find_columns(query.columns, counters), {}};
    append_rows("", result, point, query, table.rows);
    order_rows(query, counters, table.rows);
    return table;
}

std::vector<CountedMetric> counters_of(const Result& result) {
    std::vector<CountedMetric> counters;
    add_counters(result, counters);
    return counters;
}

}  // namespace kbench
