// The table of columns. Helpers say how a column follows from the steps or kernels of a row: shared, summed, a ratio of
// sums, or a mean weighted by time.
#include "analysis/columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/breakdown.h"
#include "analysis/executed.h"
#include "analysis/isa.h"
#include "analysis/ledger.h"
#include "analysis/point_roofs.h"
#include "analysis/verdict.h"
#include "analysis/write/format.h"
#include "models/error.h"
#include "models/nearest.h"

namespace kbench {
namespace {

Value text_or_na(std::string text) { return text.empty() ? Value(NoValue::na) : Value(std::move(text)); }

/// What all of `parts`, steps or kernels, have in common.
template <class Part, class ValueOf>
Value common(const std::vector<Part>& parts, ValueOf value_of) {
    if (parts.empty()) return NoValue::na;
    Value first = value_of(parts.front());
    for (const Part& part : std::span(parts).subspan(1))
        if (value_of(part) != first) return NoValue::various;
    return first;
}

/// What all steps of the row have in common.
template <class ValueOf>
Value shared(const TableRow& row, ValueOf value_of) {
    return common(row.steps, value_of);
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

std::optional<double> device_us(const StepResult& step) { return step.device_us(); }
double flops_of(const StepResult& step) { return step.cost.flops; }
double bytes_of(const StepResult& step) { return step.cost.bytes(); }
std::int64_t count(std::size_t number) { return static_cast<std::int64_t>(number); }

/// Whether the kernels of all steps are known; a recorded step may have none.
bool is_recorded(const TableRow& row) {
    const auto has_kernels = [](const PlacedStep& placed) { return !placed.step->kernels.empty(); };
    return !row.steps.empty() && (row.point->activity.runs > 0 || std::ranges::all_of(row.steps, has_kernels));
}

using Kernels = std::vector<const KernelResult*>;

/// The kernels of the row; none where those of a step are not known.
Kernels kernels_of(const TableRow& row) {
    if (row.kernel != nullptr) return {row.kernel};
    Kernels kernels;
    if (!is_recorded(row)) return kernels;
    for (const PlacedStep& placed : row.steps)
        for (const KernelResult& kernel : placed.step->kernels) kernels.push_back(&kernel);
    return kernels;
}

/// Sum over the row's kernels; nothing when they are not known.
std::optional<double> kernel_sum(const TableRow& row, double KernelResult::*member) {
    if (!is_recorded(row)) return std::nullopt;
    double total = 0;
    for (const KernelResult* kernel : kernels_of(row)) total += kernel->*member;
    return total;
}

/// The time that the row is about: a kernel's own as recorded, else the sum of the steps' medians.
std::optional<double> time_us(const TableRow& row) {
    return row.kernel != nullptr ? std::optional(row.kernel->time_us) : sum(row, device_us);
}

struct Weighted {
    std::optional<double> value;
    std::optional<double> weight;
};

/// Nothing if there are no parts, or one of them has no value or, among several, no weight.
std::optional<double> weighted_mean(const std::vector<Weighted>& parts) {
    if (parts.empty() || !parts.front().value) return std::nullopt;
    const double first = *parts.front().value;
    if (parts.size() == 1) return first;
    double deviation = 0, weights = 0;  // from the first, so that the mean of equal values is that value
    for (const auto& [value, weight] : parts) {
        if (!value || !weight) return std::nullopt;
        deviation += (*value - first) * *weight;
        weights += *weight;
    }
    return weights > 0 ? std::optional(first + deviation / weights) : std::nullopt;
}

constexpr std::string_view by_time = "; in a group weighted by time";

/// The mean of a step's figure, weighted by time.
template <class FigureOf>
std::optional<double> step_mean(const TableRow& row, FigureOf figure_of) {
    std::vector<Weighted> parts;
    for (const PlacedStep& placed : row.steps) parts.push_back({figure_of(*placed.step), placed.step->device_us()});
    return weighted_mean(parts);
}

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

/// The sum of one amount over the sum of another, times `scale`. A divisor of 0 gives nothing.
template <class AmountOf, class DivisorOf>
Column ratio(std::string column, std::string header, std::string unit, std::string what, int decimals, double scale,
             AmountOf amount_of, DivisorOf divisor_of) {
    return figure(std::move(column), std::move(header), std::move(unit), std::move(what), decimals,
                  [=](const TableRow& row) -> std::optional<double> {
                      const std::optional<double> amount = sum(row, amount_of), divisor = sum(row, divisor_of);
                      if (!amount || !divisor || *divisor <= 0) return std::nullopt;
                      return *amount / *divisor * scale;
                  });
}

/// An amount for each microsecond of the steps' medians, times `scale`.
template <class AmountOf>
Column rate(std::string column, std::string header, std::string unit, std::string what, int decimals, double scale,
            AmountOf amount_of) {
    return ratio(std::move(column), std::move(header), std::move(unit), std::move(what), decimals, scale, amount_of,
                 device_us);
}

/// A column made of counters: they are read a step, so that of several kernels none can claim them.
Column counted(Column column) {
    column.value = [value_of = std::move(column.value)](const TableRow& row) {
        const bool is_part = row.kernel != nullptr && row.steps.front().step->kernels.size() > 1;
        return is_part ? Value(NoValue::na) : value_of(row);
    };
    return column;
}

/// A counter that does not add up over steps.
Column counter_mean(std::string column, std::string header, std::string unit, std::string what, int decimals,
                    std::string name) {
    return counted(figure(std::move(column), std::move(header), std::move(unit), std::move(what), decimals,
                          [name = std::move(name)](const TableRow& row) {
                              return step_mean(row, [&](const StepResult& step) { return counter(step, name); });
                          }));
}

auto counter_of(std::string name) {
    return [name = std::move(name)](const StepResult& step) { return counter(step, name); };
}

/// Text or a whole number that the row's kernels share.
template <class ValueOf>
Column of_kernels(std::string column, Align align, std::string what, ValueOf value_of) {
    return of_row(std::move(column), align, std::move(what), [value_of](const TableRow& row) {
        return common(kernels_of(row), [&](const KernelResult* kernel) { return Value(value_of(*kernel)); });
    });
}

/// An order statistic of a step's samples. Those of several steps do not add up, so a group of several has none;
/// they are not a kernel's either.
Column statistic(std::string column, std::string header, std::string what, double Summary::*member) {
    return figure(std::move(column), std::move(header), "us", std::move(what), 3,
                  [member](const TableRow& row) -> std::optional<double> {
                      if (row.kernel != nullptr || row.steps.size() != 1 || !row.steps[0].step->time_us)
                          return std::nullopt;
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

/// Names of the kernels in order, joined by +; empty where there are none.
std::string kernel_names(const Kernels& kernels, std::string KernelResult::*member) {
    std::string list;
    for (const KernelResult* kernel : kernels) list += fmt::format("{}{}", list.empty() ? "" : "+", kernel->*member);
    return list;
}

/// Those of each step, where the row's steps share them, or else what `fallback` says of the step.
template <class TextOf>
Value shared_kernel_names(const TableRow& row, std::string KernelResult::*member, TextOf fallback) {
    if (row.kernel != nullptr) return text_or_na(row.kernel->*member);
    return shared(row, [&](const PlacedStep& placed) {
        Kernels kernels;
        for (const KernelResult& kernel : placed.step->kernels) kernels.push_back(&kernel);
        return text_or_na(kernels.empty() ? fallback(*placed.step) : kernel_names(kernels, member));
    });
}

std::string extent(const std::array<std::int64_t, 3>& size) { return fmt::format("{}", fmt::join(size, ",")); }

Value device_of(const TableRow& row) {
    const Kernels kernels = kernels_of(row);
    if (!kernels.empty())
        return common(kernels, [](const KernelResult* kernel) { return Value(std::int64_t{kernel->device}); });
    return row.point->backend == "cuda" ? Value(std::int64_t{0}) : Value(NoValue::na);
}

Value tensor_cores_of(const PlacedStep& placed) {
    const std::optional<bool> used = tensor_cores_used(*placed.step);
    return used ? Value(std::int64_t{*used}) : Value(NoValue::na);
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
    list.push_back(of_row(
        "sub", Align::right, "number of the kernel in its step, from 0; 0 where rows are not kernels",
        [](const TableRow& row) { return row.steps.empty() ? Value(NoValue::na) : Value(count(row.kernel_number)); }));
    list.push_back(
        text("mod", "module that computes the op: the provider", [](const StepResult& step) { return step.provider; }));
    list.push_back(text("op", "kind of the op that names the step", [](const StepResult& step) { return step.op; }));
    list.push_back(
        of_row("kernel", Align::left,
               "kernel, without namespaces and parameters; several of a step joined by +; the implementation "
               "where none was recorded",
               [](const TableRow& row) {
                   return shared_kernel_names(row, &KernelResult::short_name,
                                              [](const StepResult& step) { return step.implementation; });
               }));
    list.push_back(text("params", "shape and precision", [](const StepResult& step) {
        return fmt::format("[{}]{}", step.shape, name(step.precision));
    }));
    list.push_back({.name = "sil",
                    .header = "sil ns",
                    .unit = "ns",
                    .what = "silicon time: time on the device as in time_us, whole nanoseconds",
                    .align = Align::right,
                    .shortens = false,
                    .decimals = 0,
                    .value = [](const TableRow& row) {
                        const std::optional<double> time = time_us(row);
                        return time ? Value(static_cast<std::int64_t>(std::llround(*time * 1e3))) : Value(NoValue::na);
                    }});
    list.push_back(counted(of_row("tc", Align::right, "tensor cores used, by counters: 1 or 0; na when not counted",
                                  [](const TableRow& row) { return shared(row, tensor_cores_of); })));
    list.push_back(of_row("device", Align::right,
                          "ordinal of the CUDA device: of the kernels where recorded, else the first; na on a CPU",
                          device_of));
    list.push_back(of_kernels("stream", Align::right, "CUDA stream of the kernels",
                              [](const KernelResult& kernel) { return std::int64_t{kernel.stream}; }));
    list.push_back(of_kernels("grid", Align::right, "blocks launched, x,y,z",
                              [](const KernelResult& kernel) { return extent(kernel.grid); }));
    list.push_back(of_kernels("block", Align::right, "threads of a block, x,y,z",
                              [](const KernelResult& kernel) { return extent(kernel.block); }));
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
    list.push_back(of_row("repeat", Align::right, "number of the repeat of the point in its sweep, from 1",
                          [](const TableRow& row) { return Value(std::int64_t{row.point->repeat}); }));
    list.push_back(of_row("precision", Align::left, "precision asked for", [](const TableRow& row) {
        if (row.steps.empty()) return Value(std::string(name(row.point->precision)));
        return shared(row, [](const PlacedStep& placed) { return Value(std::string(name(placed.step->precision))); });
    }));
    list.push_back(of_row("status", Align::left, "of the point: done, skipped or failed",
                          [](const TableRow& row) { return Value(std::string(name(row.point->status))); }));
    list.push_back(of_row("reason", Align::left, "why the point was skipped or has failed",
                          [](const TableRow& row) { return text_or_na(row.point->reason); }));
}

/// The row's point as a whole: nothing in rows of a part of it.
const Point* whole_point(const TableRow& row) {
    return row.kernel == nullptr && row.steps.size() == row.point->steps.size() ? row.point : nullptr;
}

std::optional<Ledger> whole_ledger(const TableRow& row) {
    const Point* point = whole_point(row);
    if (point == nullptr || !point->end_to_end || row.result == nullptr) return std::nullopt;
    return make_ledger(*point, Roofs(*row.result));
}

/// A figure of the point's latency.
Column latency_figure(std::string column, std::string header, std::string what, double Summary::*member) {
    return figure(std::move(column), std::move(header), "ms", std::move(what), 4,
                  [member](const TableRow& row) -> std::optional<double> {
                      if (!row.point->end_to_end) return std::nullopt;
                      return row.point->end_to_end->latency.summary_ms.*member;
                  });
}

void add_sweep_columns(std::vector<Column>& list) {
    list.push_back(latency_figure("latency_ms", "latency ms", "the point's time end to end, median", &Summary::median));
    list.push_back(
        latency_figure("latency_low_ms", "CI low ms", "lower end of the median's 95 % interval", &Summary::ci_low));
    list.push_back(latency_figure("latency_high_ms", "CI high ms", "its upper end", &Summary::ci_high));
    list.push_back(figure("tokens_per_s", "tokens/s", "1/s", "the point's throughput at the median latency", 0,
                          [](const TableRow& row) -> std::optional<double> {
                              if (!row.point->end_to_end) return std::nullopt;
                              return row.point->end_to_end->tokens_per_s;
                          }));
    list.push_back(figure("point_tflop_per_s", "point TFLOP/s", "TFLOP/s",
                          "FLOPs of the cost model over the point's latency", 3,
                          [](const TableRow& row) -> std::optional<double> {
                              if (!row.point->end_to_end) return std::nullopt;
                              const double ms = row.point->end_to_end->latency.summary_ms.median;
                              return ms > 0 ? std::optional(row.point->cost.flops / ms * 1e-9) : std::nullopt;
                          }));
    list.push_back(figure("roof_share", "roof %", "%",
                          "share of the point's latency that the binding roofs of its steps demand; na in rows of a "
                          "part of a point, and without ceilings",
                          1, [](const TableRow& row) -> std::optional<double> {
                              const std::optional<Ledger> ledger = whole_ledger(row);
                              const std::optional<double> share = ledger ? roof_share(*ledger) : std::nullopt;
                              return share ? std::optional(100 * *share) : std::nullopt;
                          }));
    list.push_back(of_row("binding_roof", Align::left, "the roof that demands most of that", [](const TableRow& row) {
        const std::optional<Ledger> ledger = whole_ledger(row);
        return text_or_na(ledger ? binding_roof(*ledger) : "");
    }));
    list.push_back(
        of_row("verdict", Align::left, "what binds the point; na in rows of a part of it", [](const TableRow& row) {
            const std::optional<Ledger> ledger = whole_ledger(row);
            if (!ledger || !ledger->unavailable.empty()) return Value(NoValue::na);
            return text_or_na(verdict_text(judge(*ledger, Roofs(*row.result)).model));
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
    list.push_back(text("isa", "instruction set of a CPU implementation, where its name tells",
                        [](const StepResult& step) { return instruction_set(step.implementation); }));
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

/// Time that the step's FLOPs take at the ceiling of its instruction set in its precision.
std::optional<double> isa_peak_us(const StepResult& step, const CeilingRun& run) {
    const std::string_view name = isa_ceiling(instruction_set(step.implementation), step.precision);
    const auto found = std::ranges::find(run.ceilings, name, &Ceiling::name);
    if (found == run.ceilings.end() || !found->value.value || *found->value.value <= 0) return std::nullopt;
    return step.cost.flops / *found->value.value * 1e-6;
}

std::optional<double> isa_peak_pct(const TableRow& row) {
    if (row.result == nullptr || row.point->backend != "cpu") return std::nullopt;
    const std::optional<double> peak_us =
        sum(row, [&row](const StepResult& step) { return isa_peak_us(step, row.result->ceilings); });
    const std::optional<double> time = sum(row, device_us);
    if (!peak_us || !time || *time <= 0) return std::nullopt;
    return 100 * *peak_us / *time;
}

void add_time_columns(std::vector<Column>& list) {
    list.push_back(figure("time_us", "time us", "us",
                          "time on the device: the kernels' recorded times with the gaps between them, without records "
                          "the step run's median; summed in a group",
                          3, time_us));
    list.push_back(statistic("event_us", "event us",
                             "median between events around the step in the step run; na for several steps",
                             &Summary::median));
    list.push_back(statistic("time_min_us", "min us", "shortest sample; na for several steps", &Summary::min));
    list.push_back(statistic("time_p25_us", "p25 us", "25th percentile; na for several steps", &Summary::p25));
    list.push_back(statistic("time_p75_us", "p75 us", "75th percentile; na for several steps", &Summary::p75));
    list.push_back(statistic("ci_low_us", "CI low us", "lower end of the median's 95 % interval; na for several steps",
                             &Summary::ci_low));
    list.push_back(statistic("ci_high_us", "CI high us", "its upper end; na for several steps", &Summary::ci_high));
    list.push_back(of_row("n", Align::right, "samples behind the time", [](const TableRow& row) {
        if (row.kernel != nullptr)
            return row.point->activity.runs > 0 ? Value(std::int64_t{row.point->activity.runs}) : Value(NoValue::na);
        return shared(row, [](const PlacedStep& placed) {
            const std::optional<Summary>& time_us = placed.step->time_us;
            return time_us ? Value(static_cast<std::int64_t>(time_us->n)) : Value(NoValue::na);
        });
    }));
    list.push_back(figure("share", "share %", "%",
                          "share of the time of all steps of the point; of a kernel, of all its kernels' time", 2,
                          [](const TableRow& row) -> std::optional<double> {
                              if (row.steps.empty() || !row.point_time_us || *row.point_time_us <= 0)
                                  return std::nullopt;
                              return 100 * *time_us(row) / *row.point_time_us;
                          }));
    list.push_back(rate("tflop_per_s", "TFLOP/s", "TFLOP/s", "flops over the steps' median time", 3, 1e-6, flops_of));
    list.push_back(
        figure("isa_peak_pct", "ISA peak %", "%",
               "tflop_per_s over the measured ceiling of the step's instruction set and precision, all cores; "
               "na without one, and on a GPU",
               1, isa_peak_pct));
    list.push_back(rate("gb_per_s", "GB/s", "GB/s",
                        "bytes over the steps' median time; may pass the DRAM's speed where caches serve", 1, 1e-3,
                        bytes_of));
}

/// A whole number of a kernel's launch.
struct LaunchColumn {
    const char *name, *unit, *what;
    std::int64_t (*value)(const KernelResult& kernel);
};
constexpr LaunchColumn launch_columns[] = {
    {"regs", "", "registers a thread", [](const KernelResult& kernel) { return std::int64_t{kernel.registers}; }},
    {"smem_static", "B", "static shared memory a block",
     [](const KernelResult& kernel) { return kernel.static_shared_bytes; }},
    {"smem_dynamic", "B", "dynamic shared memory a block",
     [](const KernelResult& kernel) { return kernel.dynamic_shared_bytes; }},
    {"local_bytes", "B", "local memory a thread", [](const KernelResult& kernel) { return kernel.local_bytes; }},
    {"cluster", "", "blocks of a cluster; 1 without clusters",
     [](const KernelResult& kernel) { return std::int64_t{kernel.cluster_blocks}; }},
};

/// A figure that the kernels' launches give, weighted by their recorded time.
Column kernel_mean(std::string column, std::string header, std::string what, Quantity KernelResult::*member) {
    return figure(std::move(column), std::move(header), "%", std::move(what), 1, [member](const TableRow& row) {
        std::vector<Weighted> parts;
        for (const KernelResult* kernel : kernels_of(row)) parts.push_back({(kernel->*member).value, kernel->time_us});
        return weighted_mean(parts);
    });
}

void add_kernel_columns(std::vector<Column>& list) {
    list.push_back(of_row("kernels", Align::right, "number of kernels in the row", [](const TableRow& row) {
        return is_recorded(row) ? Value(count(kernels_of(row).size())) : Value(NoValue::na);
    }));
    list.push_back(
        of_row("kernel_full", Align::left, "kernel, demangled, with all its parameters", [](const TableRow& row) {
            return shared_kernel_names(row, &KernelResult::name, [](const StepResult&) { return std::string(); });
        }));
    list.push_back(figure("kernel_us", "kernel us", "us",
                          "sum of the kernels' recorded times, medians over the activity runs; longer than without "
                          "records",
                          3, [](const TableRow& row) { return kernel_sum(row, &KernelResult::time_us); }));
    list.push_back(figure("gap_us", "gap us", "us", "idle time between each kernel and the one before it, summed", 3,
                          [](const TableRow& row) { return kernel_sum(row, &KernelResult::gap_us); }));
    for (const LaunchColumn& launch : launch_columns) {
        list.push_back(of_kernels(launch.name, Align::right, launch.what, launch.value));
        list.back().unit = launch.unit;
    }
    const std::string by_kernel_time = "; for several kernels weighted by their recorded time";
    list.push_back(
        kernel_mean("occ_theory", "occ theory %",
                    "theoretical occupancy: warps an SM can hold of the launch, of the most it has" + by_kernel_time,
                    &KernelResult::theoretical_occupancy_pct));
    list.push_back(counter_mean("occ_achieved", "occ achieved %", "%",
                                fmt::format("achieved occupancy: counter achieved_occupancy{}", by_time), 1,
                                "achieved_occupancy"));
    list.push_back(of_kernels(
        "occ_limiter", Align::left, "what keeps more blocks from an SM, joined by ,",
        [](const KernelResult& kernel) { return text_or_na(fmt::format("{}", fmt::join(kernel.limiters, ","))); }));
    list.push_back(of_kernels("waves", Align::right, "blocks of the grid over those that the device holds at once",
                              [](const KernelResult& kernel) { return figure_or_na(kernel.waves.value); }));
    list.back().decimals = 2;
    list.push_back(kernel_mean("lost_last_wave", "lost wave %",
                               "places for blocks left idle in the last wave, of those of all waves" + by_kernel_time,
                               &KernelResult::lost_in_last_wave_pct));
    list.push_back(of_kernels("occ_hint", Align::left, "the nearest changes of the launch that raise its occupancy",
                              [](const KernelResult& kernel) { return text_or_na(kernel.occupancy_hint); }));
}

struct ExecutedColumn {
    Precision precision;
    const char* what;
};
constexpr ExecutedColumn executed_columns[] = {
    {Precision::fp16, "executed by tensor cores on fp16 inputs"},
    {Precision::bf16, "executed by tensor cores on bf16 inputs"},
    {Precision::tf32, "executed by tensor cores on tf32 inputs"},
    {Precision::fp64, "executed in fp64, by tensor and plain cores"},
    {Precision::fp32, "executed in fp32, by plain cores"},
};

/// nvprof's names for FLOPs on plain cores.
struct PlainFlops {
    const char* name;
    Precision precision;
    const char* what;
};
constexpr PlainFlops plain_flops_columns[] = {
    {"flop_count_sp", Precision::fp32, "fp32 FLOPs on plain cores, an FMA is 2 (nvprof)"},
    {"flop_count_dp", Precision::fp64, "fp64 FLOPs on plain cores, an FMA is 2 (nvprof)"},
    {"flop_count_hp", Precision::fp16, "fp16 and bf16 FLOPs on plain cores, of packed pairs, an FMA is 4 (nvprof)"},
};

std::optional<double> dram_bytes_of(const StepResult& step) {
    const std::optional<double> read = counter(step, "dram_read_bytes"), write = counter(step, "dram_write_bytes");
    return read && write ? std::optional(*read + *write) : std::nullopt;
}

void add_executed_columns(std::vector<Column>& list) {
    const auto all = [](const StepResult& step) { return executed_flops(step); };
    list.push_back(
        counted(amount("executed_flops", "FLOP", "executed by tensor and plain cores, by counters; an FMA is 2", all)));
    for (const ExecutedColumn& row : executed_columns)
        list.push_back(counted(
            amount(fmt::format("executed_{}", name(row.precision)), "FLOP", row.what,
                   [precision = row.precision](const StepResult& step) { return executed_flops(step, precision); })));
    list.push_back(counted(
        ratio("executed_over_model", "executed/model", "", "executed_flops over flops with padding_flops", 3, 1, all,
              [](const StepResult& step) { return std::optional(step.cost.flops + step.padding_flops); })));
    list.push_back(amount("matrix_flops", "FLOP", "FLOPs of matrix products as launched, 2 m n k with padding",
                          [](const StepResult& step) { return step.matrix_flops; }));
    list.push_back(counted(text("mismatch",
                                "what the counters found executed where it is not the precision asked for; na where "
                                "they found nothing or were not read",
                                [](const StepResult& step) { return executed_mismatch(step).value_or(""); })));
    for (const PlainFlops& row : plain_flops_columns)
        list.push_back(counted(amount(row.name, "FLOP", row.what, [precision = row.precision](const StepResult& step) {
            return plain_flops(step, precision);
        })));
    list.push_back(counted(
        amount("cf_executed", "inst", "warp instructions of control flow (nvprof)", counter_of("cf_executed"))));
}

void add_memory_columns(std::vector<Column>& list) {
    list.push_back(counted(amount("dram_bytes", "B", "read from and written to DRAM, by counters", dram_bytes_of)));
    list.push_back(counted(ratio("dram_over_compulsory", "DRAM/compulsory", "",
                                 "dram_bytes over bytes; below 1 where caches held what a step before it left", 3, 1,
                                 dram_bytes_of, bytes_of)));
    list.push_back(counted(ratio("l2_over_compulsory", "L2/compulsory", "", "counter l2_bytes over bytes", 3, 1,
                                 counter_of("l2_bytes"), bytes_of)));
    list.push_back(counted(
        rate("dram_gb_per_s", "DRAM GB/s", "GB/s", "dram_bytes over the steps' median time", 1, 1e-3, dram_bytes_of)));
    for (const char* direction : {"read", "write"})
        list.push_back(
            counted(rate(fmt::format("dram_{}_throughput", direction), fmt::format("DRAM {} GB/s", direction), "GB/s",
                         fmt::format("DRAM {} bytes over the steps' median time (nvprof)", direction), 1, 1e-3,
                         counter_of(fmt::format("dram_{}_bytes", direction)))));
}

/// A counter under the names of those who know it.
struct CounterColumn {
    const char *name, *counter, *header, *unit, *what;
    int decimals;
};
constexpr CounterColumn counter_columns[] = {
    {"sm_active", "sm_active", "SM active %", "%", "share of the time in which an SM had a warp", 1},
    {"sm_efficiency", "sm_active", "sm_efficiency %", "%", "nvprof's name of sm_active", 1},
    {"achieved_occupancy", "achieved_occupancy", "achieved_occupancy %", "%", "nvprof's name of occ_achieved", 1},
    {"ipc", "ipc", "ipc", "inst/cycle", "warp instructions per active cycle of an SM (nvprof)", 2},
};

void add_counter_columns(std::vector<Column>& list) {
    for (const CounterColumn& row : counter_columns)
        list.push_back(counter_mean(row.name, row.header, row.unit, fmt::format("{}{}", row.what, by_time),
                                    row.decimals, row.counter));
}

std::vector<Column> make_columns() {
    std::vector<Column> list;
    add_pyprof_columns(list);
    add_point_columns(list);
    add_sweep_columns(list);
    add_step_columns(list);
    add_time_columns(list);
    add_kernel_columns(list);
    add_executed_columns(list);
    add_memory_columns(list);
    add_counter_columns(list);
    return list;
}

/// Whether the counter's values of several steps add up: it counts, and is no mean of a count.
bool adds_up(const CountedMetric& metric) {
    static constexpr std::string_view counts[] = {"byte",   "op",        "inst",     "cycle",
                                                  "sector", "wavefront", "conflict", "ns"};
    return std::ranges::find(counts, metric.unit) != std::end(counts) && !metric.source.ends_with(".ratio");
}

}  // namespace

std::span<const Column> columns() {
    static const std::vector<Column> list = make_columns();
    return list;
}

Column counter_column(const CountedMetric& metric) {
    const std::string header = metric.unit.empty() ? metric.name : fmt::format("{} {}", metric.name, metric.unit);
    if (!adds_up(metric))
        return counter_mean(metric.name, header, metric.unit, fmt::format("{}{}", metric.source, by_time), 2,
                            metric.name);
    const auto total = [name = metric.name](const TableRow& row) { return sum(row, counter_of(name)); };
    return counted(figure(metric.name, header, metric.unit, metric.source, 0, total));
}

Column find_column(std::string_view wanted, std::span<const CountedMetric> counters) {
    std::vector<std::string> names;
    for (const Column& column : columns()) {
        if (column.name == wanted) return column;
        names.push_back(column.name);
    }
    for (const CountedMetric& metric : counters) {
        if (metric.name == wanted) return counter_column(metric);
        names.push_back(metric.name);
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
