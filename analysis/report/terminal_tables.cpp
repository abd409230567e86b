// The tables of the terminal summary; see terminal_tables.h.
#include "analysis/report/terminal_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "analysis/explain/breakdown.h"
#include "analysis/table/table.h"
#include "analysis/table/table_query.h"
#include "models/base/format.h"

namespace kbench {
namespace {

constexpr std::size_t most_layers = 8;
constexpr int time_digits = 4;  // a median is known to about 0.5 %, differences worth seeing are smaller
constexpr double us_per_ms = 1e3;

std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }

/// The kinds that the steps compute besides the one that names them: "+bias +gelu".
std::string fused_cell(const StepGroup& group) {
    std::string text;
    for (const std::string& op : group.ops)
        if (op != group.name) text += fmt::format("{}+{}", text.empty() ? "" : " ", op);
    return text;
}

std::string implementation_cell(const StepGroup& group) {
    return group.implementations.size() == 1 ? one_line(group.implementations.front())
                                             : fmt::format("{} variants", group.implementations.size());
}

/// A rate; empty where the steps have no work of that kind (an embedding that only copies has no FLOPs).
std::string rate(double value) { return value > 0 ? significant(value) : std::string(); }

/// Columns that both breakdown tables share, after their names.
std::vector<std::string> group_cells(const StepGroup& group, int decimals) {
    return {std::to_string(group.steps), fixed(group.time_us / us_per_ms, decimals), fixed(100 * group.share, 1),
            rate(group.tflop_per_s()), rate(group.gb_per_s())};
}

/// Idle time before the first kernel of each step but the first.
double gaps_between_steps_ms(const Point& point) {
    double us = 0;
    for (const StepResult& step : point.steps)
        if (!step.kernels.empty()) us += step.kernels.front().gap_us;
    return us / us_per_ms;
}

/// How the steps, timed one by one, compare with the whole.
std::string closing_line(const Point& point, const Breakdown& breakdown) {
    if (!point.end_to_end || point.end_to_end->latency.summary_ms.median <= 0) return {};
    const double whole_ms = point.end_to_end->latency.summary_ms.median, sum_ms = breakdown.time_us / us_per_ms;
    const TimeUnit unit = time_unit(whole_ms);
    const int decimals = decimals_for(whole_ms * unit.per_ms, time_digits);
    const std::string how = point.activity.runs > 0
                                ? fmt::format("recorded kernels, with {} {} between steps not in the sum, come to",
                                              fixed(gaps_between_steps_ms(point) * unit.per_ms, decimals), unit.name)
                                : std::string("steps measured one by one sum to");
    return fmt::format(
        "{} {} {}, {:.1f} % of the {}'s median of {} {}: {} {} {}", how, fixed(sum_ms * unit.per_ms, decimals),
        unit.name, 100 * sum_ms / whole_ms, point.backend() == "cuda" ? "CUDA graph" : "forward pass",
        fixed(whole_ms * unit.per_ms, decimals), unit.name, fixed(std::abs(sum_ms - whole_ms) * unit.per_ms, decimals),
        unit.name, sum_ms >= whole_ms ? "more" : "less");
}

/// A column of the hardware table, with a header shorter than its own: the title says the rest.
struct HardwareColumn {
    std::string_view name, header;
    int droppable = 0;
    bool counted = false;  ///< needs counters
};
constexpr HardwareColumn hardware_columns[] = {
    {"layer", "layer"},
    {"kernel", "kernel", 1},
    {"occ_theory", "theory %"},
    {"occ_achieved", "occ %"},
    {"occ_limiter", "limited by"},
    {"ipc", "ipc", 2, true},
    {"tensor_active", "tensor %", 0, true},
    {"dram_gb_per_s", "DRAM GB/s", 0, true},
    {"dram_over_compulsory", "DRAM x", 0, true},
};

/// Limiters in few letters.
std::string abbreviated(std::string text) {
    for (const auto& [word, few] : {std::pair{"registers", "regs"}, std::pair{"shared memory", "smem"}})
        if (const std::size_t at = text.find(word); at != text.npos) text.replace(at, std::strlen(word), few);
    return text;
}

}  // namespace

std::string latency_table(const Point& point, std::size_t width) {
    Table table({{"latency", Align::left},
                 {"unit", Align::left},
                 {"median"},
                 {"95 % CI"},
                 {"min"},
                 {"mean", Align::right, 2},
                 {"p90", Align::right, 3},
                 {"p95", Align::right, 4},
                 {"p99", Align::right, 1},
                 {"max"},
                 {"n"}});
    const auto add = [&](std::string_view label, const std::optional<Timing>& timing) {
        if (!timing) return;
        const Summary& ms = timing->summary_ms;
        const TimeUnit unit = time_unit(ms.median);
        const int decimals = decimals_for(ms.median * unit.per_ms, time_digits);
        const auto show = [&](double value_ms) { return fixed(value_ms * unit.per_ms, decimals); };
        table.add_row({std::string(label), std::string(unit.name), show(ms.median),
                       ms.has_interval() ? fmt::format("[{}, {}]", show(ms.ci_low), show(ms.ci_high)) : "-",
                       show(ms.min), show(ms.mean), show(ms.p90), show(ms.p95), show(ms.p99), show(ms.max),
                       std::to_string(ms.n)});
    };
    const EndToEnd& times = *point.end_to_end;
    add(point.backend() == "cuda" ? "CUDA graph" : "forward", times.latency);
    add("stream", times.stream);
    add("enqueue", times.enqueue);
    add("H2D", times.host_to_device);
    add("D2H", times.device_to_host);

    std::string text = table.text(2, width);
    if (!times.converged) {
        const double ci = times.latency.summary_ms.relative_ci();
        const std::string reached = std::isfinite(ci)
                                        ? fmt::format("the median's interval was still +-{:.2f} %", 100 * ci)
                                        : std::string("too few samples for an interval");
        text += wrap("  ", fmt::format("not converged: {} when the time budget ended", reached), width);
    }
    return text;
}

std::string op_table(const Point& point, std::size_t width) {
    if (point.steps.empty()) return {};
    const Breakdown breakdown = by_op_kind(point);
    if (breakdown.groups.empty()) return "\n  where the time goes: the steps were not timed\n";

    const int decimals = decimals_for(breakdown.time_us / us_per_ms, time_digits);
    Table table({{"op", Align::left},
                 {"provider", Align::left},
                 {"steps"},
                 {"total ms"},
                 {"share %"},
                 {"TFLOP/s"},
                 {"GB/s"},
                 {"fused with", Align::left, 2},
                 {"implementation", Align::left, 1, true}});
    std::size_t steps = 0;
    for (const StepGroup& group : breakdown.groups) {
        std::vector<std::string> cells = {group.name, fmt::format("{}", fmt::join(group.providers, " "))};
        std::ranges::move(group_cells(group, decimals), std::back_inserter(cells));
        cells.push_back(fused_cell(group));
        cells.push_back(implementation_cell(group));
        table.add_row(std::move(cells));
        steps += group.steps;
    }
    table.add_row({"sum", "", std::to_string(steps), fixed(breakdown.time_us / us_per_ms, decimals), "100.0"});

    std::string text = "\n  where the time goes\n" + table.text(4, width);
    if (breakdown.untimed_steps > 0)
        text += fmt::format("    {} of {} steps have no time\n", breakdown.untimed_steps, point.steps.size());
    const std::string closing = closing_line(point, breakdown);
    return closing.empty() ? text : text + wrap("    ", closing, width);
}

std::string layer_table(const Point& point, std::size_t width) {
    const Breakdown breakdown = by_layer(point);
    if (breakdown.groups.empty()) return {};

    const int decimals = decimals_for(breakdown.time_us / us_per_ms, time_digits);
    Table table({{"layer", Align::left},
                 {"steps"},
                 {"total ms"},
                 {"share %"},
                 {"TFLOP/s"},
                 {"GB/s"},
                 {"ops", Align::left, 1, true}});
    const std::size_t shown = std::min(most_layers, breakdown.groups.size());
    for (std::size_t i = 0; i < shown; ++i) {
        const StepGroup& group = breakdown.groups[i];
        std::vector<std::string> cells = {one_line(group.name)};
        std::ranges::move(group_cells(group, decimals), std::back_inserter(cells));
        cells.push_back(fmt::format("{}", fmt::join(group.ops, ", ")));
        table.add_row(std::move(cells));
    }
    const std::string title =
        shown == breakdown.groups.size()
            ? std::string("by layer, slowest first (* is every block)")
            : fmt::format("by layer, the slowest {} of {} (* is every block)", shown, breakdown.groups.size());
    return "\n  " + title + '\n' + table.text(4, width);
}

std::string hardware_table(const Point& point, std::size_t width) {
    const auto counted = [&](std::string_view metric) {
        return std::ranges::find(point.counters.metrics, metric, &CountedMetric::name) != point.counters.metrics.end();
    };
    if (point.backend() != "cuda" || (point.activity.runs == 0 && !counted("tensor_active"))) return {};
    ResultFile file;
    file.result.points = {point};
    TableQuery query;
    query.level = &find_level("layer");
    query.fold = true;
    query.sort = SortBy{"time_us", true};
    query.top = most_layers;
    std::vector<TableColumn> layout;
    for (const HardwareColumn& column : hardware_columns) {
        if (column.counted && !counted("tensor_active")) continue;
        query.columns.emplace_back(column.name);
        const bool is_text = find_column(column.name, point.counters.metrics).align == Align::left;
        layout.push_back({std::string(column.header), is_text ? Align::left : Align::right, column.droppable,
                          column.name == "kernel"});
    }
    const QueriedTable found = query_table(std::span(&file, 1), query);
    Table text(std::move(layout));
    for (const TableRow& row : found.rows) {
        std::vector<std::string> cells;
        for (const Column& column : found.columns) {
            const Value value = column.value(row);
            const bool is_limiter = column.name == "occ_limiter";
            const std::string cell = value == Value(NoValue::na) ? "" : shown(column, value);
            cells.push_back(is_limiter ? abbreviated(cell) : cell);
        }
        text.add_row(std::move(cells));
    }
    return "\n  what the hardware did (DRAM x: its bytes over the compulsory ones)\n" + text.text(4, width);
}

std::string sweep_table(std::span<const Point> points, std::size_t width) {
    // A column that has the same value in every row says nothing.
    const auto text = [](const Point& point, const Axis& axis) {
        const AxisValue* value = point.axes.find(axis.name);
        return value ? text_of(*value) : std::string();
    };
    const auto varies = [&](const Axis& axis) {
        return std::ranges::any_of(points,
                                   [&](const Point& point) { return text(point, axis) != text(points.front(), axis); });
    };
    const Axis& model = axis_named("model");  // the title names the only one
    std::vector<const Axis*> shown;
    std::vector<TableColumn> layout;
    for (const Axis* axis : axes_in_tables()) {
        if (!varies(*axis) && (!axis->always_told || axis == &model)) continue;
        shown.push_back(axis);
        layout.push_back({std::string(axis->name), axis->kind == AxisKind::count ? Align::right : Align::left});
    }
    layout.insert(layout.end(), {{"median ms"},
                                 {"95 % CI", Align::right, 1},
                                 {"tokens/s"},
                                 {"TFLOP/s"},
                                 {"J/sequence", Align::right, 2},
                                 {"status", Align::left, 0, true}});
    Table table(std::move(layout));
    for (const Point& point : points) {
        std::vector<std::string> cells;
        for (const Axis* axis : shown) cells.push_back(text(point, *axis));
        if (point.end_to_end) {
            const EndToEnd& times = *point.end_to_end;
            const Summary& ms = times.latency.summary_ms;
            const int decimals = decimals_for(ms.median, time_digits);
            const std::optional<double> energy = value_of(times.energy_per_sequence_j);
            cells.push_back(fixed(ms.median, decimals));
            cells.push_back(ms.has_interval()
                                ? fmt::format("[{}, {}]", fixed(ms.ci_low, decimals), fixed(ms.ci_high, decimals))
                                : "-");
            cells.push_back(times.tokens_per_s ? significant(*times.tokens_per_s) : "");
            cells.push_back(ms.median > 0 ? significant(point.cost.flops / ms.median * 1e-9) : "");
            cells.push_back(energy ? significant(*energy) : "");
        } else {
            cells.resize(cells.size() + 5);
        }
        cells.emplace_back(name(point.status));
        table.add_row(std::move(cells));
    }
    return (varies(model) ? std::string("all points") : one_line(points.front().model()) + ", all points") + '\n' +
           table.text(2, width);
}

}  // namespace kbench
