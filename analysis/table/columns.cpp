// The table of columns: its parts together, counters under their own names, and finding one.
#include "analysis/table/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/table/columns_builders.h"
#include "kbench/error.h"
#include "models/base/format.h"
#include "models/base/nearest.h"

namespace kbench {
namespace {

/// Whether the counter's values of several steps add up: it counts, and is no mean of a count.
bool adds_up(const CountedMetric& metric) {
    static constexpr std::string_view counts[] = {"byte",   "op",        "inst",     "cycle",
                                                  "sector", "wavefront", "conflict", "ns"};
    return std::ranges::find(counts, metric.unit) != std::end(counts) && !metric.source.ends_with(".ratio");
}

}  // namespace

std::span<const Column> columns() {
    using namespace column;
    static const std::vector<Column> list = [] {
        std::vector<Column> all;
        for (const Entries& part :
             {pyprof_columns(), point_columns(), sweep_columns(), step_columns(), time_columns(), cause_columns(),
              kernel_columns(), executed_columns(), memory_columns(), counter_columns()})
            std::ranges::transform(part, std::back_inserter(all), column_of);
        // The numbers of ops are text, but none of them may be lost.
        std::ranges::find(all, "seq", &Column::name)->shortens = false;
        return all;
    }();
    return list;
}

Column counter_column(const CountedMetric& metric) {
    using namespace column;
    const std::string header = metric.unit.empty() ? metric.name : fmt::format("{} {}", metric.name, metric.unit);
    const auto value = [name = metric.name](Step step) { return counter_named(step, name); };
    if (adds_up(metric)) return column_of({metric.name, header, metric.unit, 0, counted(total(value)), metric.source});
    return column_of(
        {metric.name, header, metric.unit, 2, counted(mean(value)), fmt::format("{}{}", metric.source, by_time)});
}

Column find_column(std::string_view wanted, std::span<const CountedMetric> counters) {
    // Names that scripts of before may ask for.
    static constexpr std::pair<std::string_view, std::string_view> renamed[] = {
        {"least_bytes", "compulsory_bytes"},      {"dependent_steps", "time_steps"},
        {"dependent_us", "time_step_us"},         {"dram_over_streaming", "dram_over_unfused"},
        {"l2_over_streaming", "l2_over_unfused"},
    };
    for (const auto& [before, now] : renamed)
        if (wanted == before) wanted = now;
    std::vector<std::string> names;
    for (const Column& column : columns()) {
        if (column.name == wanted) return column;
        names.push_back(column.name);
    }
    for (const CountedMetric& metric : counters) {
        if (metric.name == wanted) return counter_column(metric);
        names.push_back(metric.name);
    }
    throw UsageError(fmt::format("no column '{}'; {} (`kbench list columns`)", wanted, nearest_name(wanted, names)));
}

std::string shown(const Column& column, const Value& value) {
    if (const double* number = std::get_if<double>(&value)) return fmt::format("{:.{}f}", *number, column.decimals);
    return one_line(exact(value));
}

std::string exact(const Value& value) {
    struct Print {
        std::string operator()(NoValue none) const { return std::string(name(none)); }
        std::string operator()(const std::string& text) const { return text; }
        std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
        std::string operator()(double number) const { return fmt::format("{}", number); }
    };
    return std::visit(Print{}, value);
}

}  // namespace kbench
