// CSV; steps.csv and kernels.csv: the table's columns under the names that their readers know.
#include "analysis/report/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/report/writers.h"
#include "analysis/table/table_query.h"

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

/// Columns of the table, under the names of the file.
class CsvColumns {
  public:
    void add(std::string name, std::string_view column) {
        list_.push_back(find_column(column));
        list_.back().name = std::move(name);
    }
    void add_all(std::initializer_list<const char*> names) {
        for (const char* name : names) add(name, name);
    }
    /// Every counter of the result, under its own name even where a column of tables has that name too.
    void add_counters(const Result& result) {
        for (const CountedMetric& metric : counters_of(result)) list_.push_back(counter_column(metric));
    }
    /// Whose step a row is, in the names of steps.csv.
    void add_place(const Result& result) {
        add("point", "point");
        for (const Axis& axis : axes()) {
            const auto is_unusual = [&axis](const Point& point) { return !point.axes.is_usual(axis); };
            if (axis.always_told || (axis.order != 0 && std::ranges::any_of(result.points, is_unusual)))
                add(std::string(axis.name), axis.column);
        }
        add("direction", "dir");
        add_all({"step", "layer", "op"});
    }

    /// The header and a line a row. Readers of these files know an empty cell as what has no value.
    std::string text(std::span<const TableRow> rows) const {
        std::vector<std::string> cells;
        for (const Column& column : list_) cells.push_back(column.name);
        std::string lines = csv_line(cells);
        for (const TableRow& row : rows) {
            cells.clear();
            for (const Column& column : list_) {
                const Value value = column.value(row);
                cells.push_back(std::holds_alternative<NoValue>(value) ? std::string() : exact(value));
            }
            lines += csv_line(cells);
        }
        return lines;
    }

  private:
    std::vector<Column> list_;
};

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
    CsvColumns columns;
    columns.add_place(result);
    columns.add_all({"absorbs", "provider", "implementation", "shape", "flops", "padding_flops", "bytes"});
    for (const std::string_view role : role_names) {
        const std::string name = fmt::format("bytes_{}", role);
        columns.add(name, name);
    }
    columns.add("time_us_median", "event_us");
    columns.add("time_us_min", "time_min_us");
    columns.add("time_us_p25", "time_p25_us");
    columns.add("time_us_p75", "time_p75_us");
    columns.add("time_us_ci_low", "ci_low_us");
    columns.add("time_us_ci_high", "ci_high_us");
    columns.add_all({"n", "tflop_per_s", "gb_per_s"});
    columns.add("device_us", "time_us");
    columns.add_all({"kernels", "tc", "mismatch"});
    columns.add_counters(result);
    return columns.text(step_rows(result));
}

std::string write_kernels_csv(const Result& result) {
    CsvColumns columns;
    columns.add_place(result);
    columns.add("kernel_index", "sub");
    columns.add_all({"provider", "implementation", "shape", "kernel", "kernel_full", "device", "stream", "grid",
                     "block", "cluster", "regs", "smem_static", "smem_dynamic", "local_bytes"});
    columns.add("time_us_median", "kernel_us");
    columns.add_all(
        {"gap_us", "n", "occ_theory", "occ_achieved", "occ_limiter", "waves", "lost_last_wave", "occ_hint"});
    return columns.text(kernel_rows(result));
}

}  // namespace kbench
