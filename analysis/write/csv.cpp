// steps.csv: one table of columns drives the header and every row.
#include <fmt/format.h>

#include <functional>

#include "analysis/write/writers.h"

namespace kbench {
namespace {

struct Row {
    std::size_t point_index;
    const Point& point;
    const StepResult& step;
};

struct Column {
    std::string name;
    std::function<std::string(const Row&)> cell;
};

/// The shortest decimal that reads back as the same number.
std::string number(double value) { return fmt::format("{}", value); }

/// A figure of the step's time; empty when the step was not timed.
Column time_column(std::string name, double Summary::*member) {
    return {std::move(name), [member](const Row& row) {
                return row.step.time_us ? number((*row.step.time_us).*member) : std::string();
            }};
}

Column rate_column(std::string name, double (StepResult::*rate)() const) {
    return {std::move(name),
            [rate](const Row& row) { return row.step.time_us ? number((row.step.*rate)()) : std::string(); }};
}

std::vector<Column> make_columns() {
    std::vector<Column> columns = {
        {"point", [](const Row& row) { return std::to_string(row.point_index); }},
        {"model", [](const Row& row) { return row.point.model; }},
        {"backend", [](const Row& row) { return row.point.backend; }},
        {"batch", [](const Row& row) { return std::to_string(row.point.batch); }},
        {"seq", [](const Row& row) { return std::to_string(row.point.seq); }},
        {"precision", [](const Row& row) { return std::string(name(row.step.precision)); }},
        {"direction", [](const Row& row) { return std::string(name(row.step.direction)); }},
        {"step", [](const Row& row) { return std::to_string(row.step.index); }},
        {"layer", [](const Row& row) { return row.step.layer; }},
        {"op", [](const Row& row) { return row.step.op; }},
        {"absorbs", [](const Row& row) { return fmt::format("{}", fmt::join(row.step.absorbs, ";")); }},
        {"provider", [](const Row& row) { return row.step.provider; }},
        {"implementation", [](const Row& row) { return row.step.implementation; }},
        {"shape", [](const Row& row) { return row.step.shape; }},
        {"flops", [](const Row& row) { return number(row.step.cost.flops); }},
        {"padding_flops", [](const Row& row) { return number(row.step.padding_flops); }},
        {"bytes", [](const Row& row) { return number(row.step.cost.bytes()); }},
    };
    for (std::size_t role = 0; role < role_count; ++role)
        columns.push_back({fmt::format("bytes_{}", role_names[role]), [role](const Row& row) {
                               const Cost& cost = row.step.cost;
                               return number(cost.bytes_read[role] + cost.bytes_written[role]);
                           }});
    columns.push_back(time_column("time_us_median", &Summary::median));
    columns.push_back(time_column("time_us_min", &Summary::min));
    columns.push_back(time_column("time_us_p25", &Summary::p25));
    columns.push_back(time_column("time_us_p75", &Summary::p75));
    columns.push_back(time_column("time_us_ci_low", &Summary::ci_low));
    columns.push_back(time_column("time_us_ci_high", &Summary::ci_high));
    columns.push_back(
        {"n", [](const Row& row) { return row.step.time_us ? std::to_string(row.step.time_us->n) : std::string(); }});
    columns.push_back(rate_column("tflop_per_s", &StepResult::tflop_per_s));
    columns.push_back(rate_column("gb_per_s", &StepResult::gb_per_s));
    return columns;
}

/// Quoted only where RFC 4180 asks for it. Lines end in a bare line feed, which its readers take and cut and awk need.
std::string quote(const std::string& cell) {
    if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
    std::string quoted = "\"";
    for (const char c : cell) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

template <class Cell>
void append_line(std::string& text, const std::vector<Column>& columns, Cell cell) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (i > 0) text += ',';
        text += quote(cell(columns[i]));
    }
    text += '\n';
}

}  // namespace

std::string write_steps_csv(const Result& result) {
    const std::vector<Column> columns = make_columns();
    std::string text;
    append_line(text, columns, [](const Column& column) { return column.name; });
    for (std::size_t i = 0; i < result.points.size(); ++i)
        for (const StepResult& step : result.points[i].steps) {
            const Row row{i, result.points[i], step};
            append_line(text, columns, [&](const Column& column) { return column.cell(row); });
        }
    return text;
}

}  // namespace kbench
