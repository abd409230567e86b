// CSV, and steps.csv: the table's columns under the names that its readers know.
#include "analysis/write/csv.h"

#include <fmt/format.h>

#include <utility>

#include "analysis/table_query.h"
#include "analysis/write/writers.h"

namespace kbench {
namespace {

std::string quote(const std::string& cell) {
    if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
    std::string quoted = "\"";
    for (const char c : cell) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

/// The name in steps.csv, and the column of the table that it shows.
struct CsvColumn {
    std::string name;
    const Column* column;
};

std::vector<CsvColumn> steps_csv_columns() {
    std::vector<CsvColumn> list;
    const auto add = [&list](const std::string& name, std::string_view column) {
        list.push_back({name, &find_column(column)});
    };
    const auto add_all = [&add](std::initializer_list<const char*> names) {
        for (const char* name : names) add(name, name);
    };
    add_all({"point", "model", "backend", "batch"});
    add("seq", "seq_len");
    add("precision", "precision");
    add("direction", "dir");
    add_all(
        {"step", "layer", "op", "absorbs", "provider", "implementation", "shape", "flops", "padding_flops", "bytes"});
    for (const std::string_view role : role_names) {
        const std::string name = fmt::format("bytes_{}", role);
        add(name, name);
    }
    add("time_us_median", "time_us");
    add("time_us_min", "time_min_us");
    add("time_us_p25", "time_p25_us");
    add("time_us_p75", "time_p75_us");
    add("time_us_ci_low", "ci_low_us");
    add("time_us_ci_high", "ci_high_us");
    add_all({"n", "tflop_per_s", "gb_per_s"});
    return list;
}

}  // namespace

std::string csv_line(std::span<const std::string> cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i > 0) line += ',';
        line += quote(cells[i]);
    }
    return line + '\n';
}

std::string write_steps_csv(const Result& result) {
    const std::vector<CsvColumn> columns = steps_csv_columns();
    std::vector<std::string> cells;
    for (const CsvColumn& column : columns) cells.push_back(column.name);
    std::string text = csv_line(cells);
    for (const TableRow& row : step_rows(result)) {
        cells.clear();
        for (const CsvColumn& column : columns) {
            const Value value = column.column->value(row);
            // Readers of steps.csv know an empty cell as what has no value.
            cells.push_back(std::holds_alternative<NoValue>(value) ? std::string() : exact(value));
        }
        text += csv_line(cells);
    }
    return text;
}

}  // namespace kbench
