// The table of columns. Helpers say how a column follows from the steps of a row: shared, summed, or a rate of sums.
#include "analysis/columns.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "analysis/breakdown.h"
#include "analysis/write/format.h"
#include "models/error.h"
#include "models/nearest.h"

namespace kbench {
namespace {

Value text_or_na(std::string text) { return text.empty() ? Value(NoValue::na) : Value(std::move(text)); }

/// What all steps of the row have in common.
template <class ValueOf>
Value shared(const TableRow& row, ValueOf value_of) {
    if (row.steps.empty()) return NoValue::na;
    Value first = value_of(row.steps.front());
    for (const PlacedStep& step : std::span(row.steps).subspan(1))
        if (value_of(step) != first) return NoValue::various;
    return first;
}

/// The sum over all steps, nothing if there are none or one of them has no amount: a part must not pass for the whole.
template <class AmountOf>
std::optional<double> sum(const TableRow& row, AmountOf amount_of) {
    if (row.steps.empty()) return std::nullopt;
    double total = 0;
    for (const PlacedStep& placed : row.steps) {
        const std::optional<double> amount = amount_of(*placed.step);
        if (!amount) return std::nullopt;
        total += *amount;
    }
    return total;
}

Value figure_or_na(const std::optional<double>& figure) { return figure ? Value(*figure) : Value(NoValue::na); }

std::optional<double> median_us(const StepResult& step) {
    return step.time_us ? std::optional(step.time_us->median) : std::nullopt;
}
double flops_of(const StepResult& step) { return step.cost.flops; }
double bytes_of(const StepResult& step) { return step.cost.bytes(); }

/// Text of a step.
template <class TextOf>
Column text(std::string column, std::string what, TextOf text_of) {
    const auto value_of = [text_of](const PlacedStep& placed) {
        return text_or_na(std::string(text_of(*placed.step)));
    };
    return {.name = column,
            .header = column,
            .unit = {},
            .what = std::move(what),
            .align = Align::left,
            .shortens = true,
            .decimals = 0,
            .value = [value_of](const TableRow& row) { return shared(row, value_of); }};
}

/// Text or a whole number of a row or of its point.
template <class ValueOf>
Column of_row(std::string column, Align align, std::string what, ValueOf value_of) {
    return {.name = column,
            .header = column,
            .unit = {},
            .what = std::move(what),
            .align = align,
            .shortens = align == Align::left,
            .decimals = 0,
            .value = value_of};
}

/// A figure of a row.
template <class FigureOf>
Column figure(std::string column, std::string header, std::string unit, std::string what, int decimals,
              FigureOf figure_of) {
    return {.name = std::move(column),
            .header = std::move(header),
            .unit = std::move(unit),
            .what = std::move(what),
            .align = Align::right,
            .shortens = false,
            .decimals = decimals,
            .value = [figure_of](const TableRow& row) { return figure_or_na(figure_of(row)); }};
}

/// An amount of each step, summed.
template <class AmountOf>
Column amount(std::string column, std::string unit, std::string what, AmountOf amount_of) {
    return figure(column, column, std::move(unit), std::move(what), 0,
                  [amount_of](const TableRow& row) { return sum(row, amount_of); });
}

/// `amount` for each microsecond, times `scale`.
template <class AmountOf>
Column rate(std::string column, std::string unit, std::string what, int decimals, double scale, AmountOf amount_of) {
    return figure(std::move(column), unit, unit, std::move(what), decimals,
                  [=](const TableRow& row) -> std::optional<double> {
                      const std::optional<double> time_us = sum(row, median_us);
                      if (!time_us || *time_us <= 0) return std::nullopt;
                      return *sum(row, amount_of) / *time_us * scale;
                  });
}

/// An order statistic of a step's samples. Those of several steps do not add up, so a group of several has none.
Column statistic(std::string column, std::string header, std::string what, double Summary::*member) {
    return figure(std::move(column), std::move(header), "us", std::move(what), 3,
                  [member](const TableRow& row) -> std::optional<double> {
                      if (row.steps.size() != 1 || !row.steps[0].step->time_us) return std::nullopt;
                      return (*row.steps[0].step->time_us).*member;
                  });
}

/// What PyProf shows and a result does not record.
Column not_recorded(std::string column, std::string what) {
    return of_row(std::move(column), Align::right, std::move(what), [](const TableRow&) { return Value(NoValue::na); });
}

/// The numbers of the ops that a step computes. A backward step would carry those of its forward ops, which no result
/// has yet.
Value op_numbers(const PlacedStep& placed) {
    if (placed.step->direction != Direction::fwd) return NoValue::na;
    std::string list;
    for (std::size_t i = 0; i < placed.step->absorbs.size(); ++i)
        list += fmt::format("{}{}", i > 0 ? "," : "", placed.first_op + static_cast<std::int64_t>(i));
    return text_or_na(std::move(list));
}

/// The names and meanings of PyProf (github.com/NVIDIA/PyProf, docs/profile.rst), in its order.
void add_pyprof_columns(std::vector<Column>& list) {
    list.push_back(of_row("idx", Align::right,
                          "number of the row in order of execution, from 0, before --sort and --top",
                          [](const TableRow& row) { return Value(static_cast<std::int64_t>(row.index)); }));
    list.push_back(of_row("seq", Align::left,
                          "numbers of the ops computed, from 0 in the order of the forward pass; their backward steps "
                          "carry the same",
                          [](const TableRow& row) { return shared(row, op_numbers); }));
    list.back().shortens = false;
    list.push_back(not_recorded("altseq", "alternate sequence number; always na, an op has one number here"));
    list.push_back(not_recorded("tid", "thread that launched the row; na, not recorded"));
    list.push_back(of_row("layer", Align::left, "layer as the checkpoint names it; with --fold * for each number",
                          [](const TableRow& row) {
                              return shared(row, [&](const PlacedStep& placed) {
                                  const std::string& layer = placed.step->layer;
                                  return text_or_na(row.folded ? layer_group(layer) : layer);
                              });
                          }));
    list.push_back(not_recorded("trace", "call stack of the op; na, a plan has none"));
    list.push_back(text("dir", "direction: fwd, bwd, dgrad or wgrad",
                        [](const StepResult& step) { return name(step.direction); }));
    list.push_back(
        of_row("sub", Align::right, "number of the row among those with the same seq; 0 while rows are steps",
               [](const TableRow& row) { return row.steps.empty() ? Value(NoValue::na) : Value(std::int64_t{0}); }));
    list.push_back(
        text("mod", "module that computes the op: the provider", [](const StepResult& step) { return step.provider; }));
    list.push_back(text("op", "kind of the op that names the step", [](const StepResult& step) { return step.op; }));
    list.push_back(text("kernel", "kernel; the implementation's name while rows are steps",
                        [](const StepResult& step) { return step.implementation; }));
    list.push_back(text("params", "shape and precision", [](const StepResult& step) {
        return fmt::format("[{}]{}", step.shape, name(step.precision));
    }));
    list.push_back({.name = "sil",
                    .header = "sil ns",
                    .unit = "ns",
                    .what = "silicon time: time on the device, median, whole nanoseconds",
                    .align = Align::right,
                    .shortens = false,
                    .decimals = 0,
                    .value = [](const TableRow& row) {
                        const std::optional<double> time_us = sum(row, median_us);
                        return time_us ? Value(static_cast<std::int64_t>(std::llround(*time_us * 1e3)))
                                       : Value(NoValue::na);
                    }});
    list.push_back(not_recorded("tc", "tensor cores used; na until counters are recorded"));
    list.push_back(of_row("device", Align::right, "ordinal of the CUDA device, which is always the first; na on a CPU",
                          [](const TableRow& row) {
                              return row.point->backend == "cuda" ? Value(std::int64_t{0}) : Value(NoValue::na);
                          }));
    list.push_back(not_recorded("stream", "CUDA stream; na until kernels are recorded"));
    list.push_back(not_recorded("grid", "blocks launched, x,y,z; na until kernels are recorded"));
    list.push_back(not_recorded("block", "threads of a block, x,y,z; na until kernels are recorded"));
    list.push_back(amount("flops", "FLOP", "FLOPs of the cost model, a fused multiply-add is 2", flops_of));
    list.push_back(amount("bytes", "B", "compulsory bytes of the cost model, in and out", bytes_of));
}

void add_point_columns(std::vector<Column>& list) {
    list.push_back(of_row("file", Align::left, "file the row comes from",
                          [](const TableRow& row) { return text_or_na(std::string(row.file)); }));
    list.push_back(of_row("point", Align::right, "number of the point in its file, from 0",
                          [](const TableRow& row) { return Value(static_cast<std::int64_t>(row.point_index)); }));
    list.push_back(
        of_row("model", Align::left, "model", [](const TableRow& row) { return text_or_na(row.point->model); }));
    list.push_back(of_row("backend", Align::left, "cuda or cpu",
                          [](const TableRow& row) { return text_or_na(row.point->backend); }));
    list.push_back(of_row("batch", Align::right, "sequences at once",
                          [](const TableRow& row) { return Value(row.point->batch); }));
    list.push_back(of_row("seq_len", Align::right, "sequence length in tokens",
                          [](const TableRow& row) { return Value(row.point->seq); }));
    list.push_back(of_row("precision", Align::left, "precision asked for", [](const TableRow& row) {
        if (row.steps.empty()) return Value(std::string(name(row.point->precision)));
        return shared(row, [](const PlacedStep& placed) { return Value(std::string(name(placed.step->precision))); });
    }));
    list.push_back(of_row("status", Align::left, "of the point: done, skipped or failed",
                          [](const TableRow& row) { return Value(std::string(name(row.point->status))); }));
    list.push_back(figure("latency_ms", "latency ms", "ms", "the point's time end to end, median", 4,
                          [](const TableRow& row) -> std::optional<double> {
                              if (!row.point->end_to_end) return std::nullopt;
                              return row.point->end_to_end->latency.summary_ms.median;
                          }));
}

void add_step_columns(std::vector<Column>& list) {
    list.push_back(of_row("steps", Align::right, "number of steps in the row",
                          [](const TableRow& row) { return Value(static_cast<std::int64_t>(row.steps.size())); }));
    list.push_back(of_row("step", Align::right, "number of the step in its point, from 0", [](const TableRow& row) {
        return shared(row, [](const PlacedStep& placed) { return Value(std::int64_t{placed.step->index}); });
    }));
    list.push_back(text("absorbs", "every op computed, layer:kind, joined by ;",
                        [](const StepResult& step) { return fmt::format("{}", fmt::join(step.absorbs, ";")); }));
    list.push_back(text("provider", "who computes the step (`kbench list providers`)",
                        [](const StepResult& step) { return step.provider; }));
    list.push_back(text("implementation", "algorithm or kernel that the provider took",
                        [](const StepResult& step) { return step.implementation; }));
    list.push_back(
        text("shape", "shape of the op that names the step", [](const StepResult& step) { return step.shape; }));
    list.push_back(amount("padding_flops", "FLOP", "FLOPs executed on padding, not in flops",
                          [](const StepResult& step) { return step.padding_flops; }));
    for (std::size_t role = 0; role < role_count; ++role)
        list.push_back(amount(
            fmt::format("bytes_{}", role_names[role]), "B", fmt::format("compulsory bytes of {}", role_names[role]),
            [role](const StepResult& step) { return step.cost.bytes_read[role] + step.cost.bytes_written[role]; }));
}

void add_time_columns(std::vector<Column>& list) {
    list.push_back(figure("time_us", "time us", "us", "median time; in a group the sum of medians", 3,
                          [](const TableRow& row) { return sum(row, median_us); }));
    list.push_back(statistic("time_min_us", "min us", "shortest sample; na for several steps", &Summary::min));
    list.push_back(statistic("time_p25_us", "p25 us", "25th percentile; na for several steps", &Summary::p25));
    list.push_back(statistic("time_p75_us", "p75 us", "75th percentile; na for several steps", &Summary::p75));
    list.push_back(statistic("ci_low_us", "CI low us", "lower end of the median's 95 % interval; na for several steps",
                             &Summary::ci_low));
    list.push_back(statistic("ci_high_us", "CI high us", "its upper end; na for several steps", &Summary::ci_high));
    list.push_back(of_row("n", Align::right, "samples behind the time", [](const TableRow& row) {
        return shared(row, [](const PlacedStep& placed) {
            const std::optional<Summary>& time_us = placed.step->time_us;
            return time_us ? Value(static_cast<std::int64_t>(time_us->n)) : Value(NoValue::na);
        });
    }));
    list.push_back(figure("share", "share %", "%", "share of the time of all steps of the point", 2,
                          [](const TableRow& row) -> std::optional<double> {
                              if (row.steps.empty() || !row.point_time_us || *row.point_time_us <= 0)
                                  return std::nullopt;
                              return 100 * *sum(row, median_us) / *row.point_time_us;
                          }));
    list.push_back(rate("tflop_per_s", "TFLOP/s", "flops over the time", 3, 1e-6, flops_of));
    list.push_back(rate("gb_per_s", "GB/s", "bytes over the time; may pass the DRAM's speed where caches serve", 1,
                        1e-3, bytes_of));
}

std::vector<Column> make_columns() {
    std::vector<Column> list;
    add_pyprof_columns(list);
    add_point_columns(list);
    add_step_columns(list);
    add_time_columns(list);
    return list;
}

}  // namespace

std::span<const Column> columns() {
    static const std::vector<Column> list = make_columns();
    return list;
}

const Column& find_column(std::string_view wanted) {
    std::vector<std::string> names;
    for (const Column& column : columns()) {
        if (column.name == wanted) return column;
        names.push_back(column.name);
    }
    throw UsageError(fmt::format("no column '{}'; nearest: {} (`kbench list columns`)", wanted,
                                 fmt::join(nearest_names(wanted, names), ", ")));
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
