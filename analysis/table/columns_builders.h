// How a column follows from the steps or kernels of a row: shared, summed, a ratio of sums, or a mean weighted by time.
// For the files of the table of columns alone.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "analysis/explain/executed.h"
#include "analysis/table/columns.h"

namespace kbench::column {

/// The parts of the table: what is computed, and how it was.
void add_identity(std::vector<Column>& list);
void add_figures(std::vector<Column>& list);

inline Value text_or_na(std::string text) { return text.empty() ? Value(NoValue::na) : Value(std::move(text)); }

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

inline Value figure_or_na(const std::optional<double>& figure) { return figure ? Value(*figure) : Value(NoValue::na); }

inline std::optional<double> device_us(const StepResult& step) { return step.device_us(); }
inline double flops_of(const StepResult& step) { return step.cost.flops; }
inline double bytes_of(const StepResult& step) { return step.cost.bytes(); }
inline std::int64_t count(std::size_t number) { return static_cast<std::int64_t>(number); }

/// Whether the kernels of all steps are known; a recorded step may have none.
inline bool is_recorded(const TableRow& row) {
    const auto has_kernels = [](const PlacedStep& placed) { return !placed.step->kernels.empty(); };
    return !row.steps.empty() && (row.point->activity.runs > 0 || std::ranges::all_of(row.steps, has_kernels));
}

using Kernels = std::vector<const KernelResult*>;

/// The kernels of the row; none where those of a step are not known.
inline Kernels kernels_of(const TableRow& row) {
    if (row.kernel != nullptr) return {row.kernel};
    Kernels kernels;
    if (!is_recorded(row)) return kernels;
    for (const PlacedStep& placed : row.steps)
        for (const KernelResult& kernel : placed.step->kernels) kernels.push_back(&kernel);
    return kernels;
}

/// Sum over the row's kernels; nothing when they are not known.
inline std::optional<double> kernel_sum(const TableRow& row, double KernelResult::*member) {
    if (!is_recorded(row)) return std::nullopt;
    double total = 0;
    for (const KernelResult* kernel : kernels_of(row)) total += kernel->*member;
    return total;
}

/// The time that the row is about: a kernel's own as recorded, else the sum of the steps' medians.
inline std::optional<double> time_us(const TableRow& row) {
    return row.kernel != nullptr ? std::optional(row.kernel->time_us) : sum(row, device_us);
}

struct Weighted {
    std::optional<double> value;
    std::optional<double> weight;
};

/// Nothing if there are no parts, or one of them has no value or, among several, no weight.
inline std::optional<double> weighted_mean(const std::vector<Weighted>& parts) {
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
inline Column counted(Column column) {
    column.value = [value_of = std::move(column.value)](const TableRow& row) {
        const bool is_part = row.kernel != nullptr && row.steps.front().step->kernels.size() > 1;
        return is_part ? Value(NoValue::na) : value_of(row);
    };
    return column;
}

/// A counter that does not add up over steps.
inline Column counter_mean(std::string column, std::string header, std::string unit, std::string what, int decimals,
                           std::function<std::optional<double>(const StepResult&)> value_of) {
    return counted(figure(std::move(column), std::move(header), std::move(unit), std::move(what), decimals,
                          [value_of = std::move(value_of)](const TableRow& row) { return step_mean(row, value_of); }));
}

inline auto counter_of(CounterOf counter) {
    return [counter](const StepResult& step) { return counters_of(step).*counter; };
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
inline Column statistic(std::string column, std::string header, std::string what, double Summary::*member) {
    return figure(std::move(column), std::move(header), "us", std::move(what), 3,
                  [member](const TableRow& row) -> std::optional<double> {
                      if (row.kernel != nullptr || row.steps.size() != 1 || !row.steps[0].step->time_us)
                          return std::nullopt;
                      return (*row.steps[0].step->time_us).*member;
                  });
}

/// What PyProf shows and a result does not record.
inline Column not_recorded(std::string column, std::string what) {
    return of_row(std::move(column), Align::right, std::move(what), [](const TableRow&) { return Value(NoValue::na); });
}

/// The numbers of the ops that a step computes; nothing for steps of a backward.
inline Value op_numbers(const PlacedStep& placed) {
    if (placed.step->direction != Direction::fwd || placed.step->is_recomputed()) return NoValue::na;
    std::string list;
    for (std::size_t i = 0; i < placed.step->absorbs.size(); ++i)
        list += fmt::format("{}{}", i > 0 ? "," : "", placed.first_op + static_cast<std::int64_t>(i));
    return text_or_na(std::move(list));
}

/// Names of the kernels in order, joined by +; empty where there are none.
inline std::string kernel_names(const Kernels& kernels, std::string KernelResult::*member) {
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

inline std::string extent(const std::array<std::int64_t, 3>& size) { return fmt::format("{}", fmt::join(size, ",")); }

inline Value device_of(const TableRow& row) {
    const Kernels kernels = kernels_of(row);
    if (!kernels.empty())
        return common(kernels, [](const KernelResult* kernel) { return Value(std::int64_t{kernel->device}); });
    return row.point->backend() == "cuda" ? Value(std::int64_t{0}) : Value(NoValue::na);
}

inline Value tensor_cores_of(const PlacedStep& placed) {
    const std::optional<bool> used = tensor_cores_used(*placed.step);
    return used ? Value(std::int64_t{*used}) : Value(NoValue::na);
}

}  // namespace kbench::column
