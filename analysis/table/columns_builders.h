// How a column follows from the steps or kernels of a row: shared, summed, a ratio of sums, or a mean weighted by time.
// A value function takes a row and returns anything that cell() takes; the builders below give it a name and words.
#pragma once

#include <concepts>
#include <functional>

#include "analysis/facts/counters.h"
#include "analysis/table/column.h"

namespace kbench::column {

using Row = const TableRow&;
using Step = const StepResult&;
using Kernel = const KernelResult&;

/// A cell's value: text, a number or an optional one. Empty text is `na`.
template <class Part>
Value cell(const Part& part) {
    if constexpr (std::same_as<Part, Value> || std::same_as<Part, NoValue>)
        return part;
    else if constexpr (std::convertible_to<const Part&, std::string_view>)
        return std::string_view(part).empty() ? Value(NoValue::na) : Value(std::string(part));
    else if constexpr (std::integral<Part>)
        return static_cast<std::int64_t>(part);
    else if constexpr (std::floating_point<Part>)
        return part;
    else
        return part ? cell(*part) : Value(NoValue::na);
}

/// What all of `parts`, steps or kernels, have in common.
template <class Part, class ValueOf>
Value common(const std::vector<Part>& parts, ValueOf value_of) {
    if (parts.empty()) return NoValue::na;
    Value first = value_of(parts.front());
    for (const Part& part : std::span(parts).subspan(1))
        if (value_of(part) != first) return NoValue::various;
    return first;
}

/// What the steps of a row share.
template <class Of>
auto of_steps(Of of) {
    return [of](Row row) {
        return common(row.steps, [&](const PlacedStep& placed) { return cell(std::invoke(of, *placed.step)); });
    };
}

/// The sum over all steps, nothing if there are none or one of them has no amount: a part must not pass for the whole.
template <class Of>
std::optional<double> sum(Row row, Of of) {
    if (row.steps.empty()) return std::nullopt;
    double total = 0;
    for (const PlacedStep& placed : row.steps) {
        std::optional<double> amount;
        if constexpr (std::is_invocable_v<Of, Row, Step>)
            amount = std::invoke(of, row, *placed.step);
        else
            amount = std::invoke(of, *placed.step);
        if (!amount) return std::nullopt;
        total += *amount;
    }
    return total;
}

/// The sum of one amount over the sum of another, times `scale`. A divisor of 0 gives nothing.
template <class Of, class Over>
auto ratio(Of of, Over over, double scale = 1) {
    return [=](Row row) -> std::optional<double> {
        const std::optional<double> amount = sum(row, of), divisor = sum(row, over);
        return amount && divisor && *divisor > 0 ? std::optional(*amount / *divisor * scale) : std::nullopt;
    };
}

inline std::optional<double> device_us(Step step) { return step.device_us(); }
/// Nothing for a program's op whose work is not known.
std::optional<double> flops_of(Row row, Step step);
/// A copy or a fill has what it moves.
std::optional<double> bytes_of(Row row, Step step);

/// Whether the kernels of all steps are known; a recorded step may have none.
bool is_recorded(Row row);
/// The kernels of the row; none where those of a step are not known.
std::vector<const KernelResult*> kernels_of(Row row);

/// What the row's kernels share.
template <class Of>
auto of_kernels(Of of) {
    return [of](Row row) {
        return common(kernels_of(row), [&](const KernelResult* kernel) { return cell(std::invoke(of, *kernel)); });
    };
}

/// The kernels of the row without copies and fills, which have no blocks.
std::vector<const KernelResult*> launched_kernels_of(Row row);

/// What the launches of the row's kernels share.
template <class Of>
auto of_launches(Of of) {
    return [of](Row row) {
        return common(launched_kernels_of(row),
                      [&](const KernelResult* kernel) { return cell(std::invoke(of, *kernel)); });
    };
}

/// The kernel's name, or those of a step's kernels joined by +; without kernels what the step has `otherwise`, if any.
std::function<Value(Row)> kernel_names(std::string KernelResult::*name, std::string StepResult::*otherwise = nullptr);

/// The time that the row is about: a kernel's own as recorded, else the sum of the steps' medians.
inline std::optional<double> time_us(Row row) {
    return row.kernel != nullptr ? std::optional(row.kernel->time_us) : sum(row, device_us);
}

/// Null in rows of a part of a point, and where nothing was timed.
const Explanation* whole_explanation(Row row);

struct Weighted {
    std::optional<double> value, weight;
};
/// Nothing if there are no parts, or one of them has no value or, among several, no weight.
std::optional<double> weighted_mean(const std::vector<Weighted>& parts);

constexpr std::string_view by_time = "; in a group weighted by time";

/// The mean of a step's figure, weighted by time.
template <class Of>
std::optional<double> step_mean(Row row, Of of) {
    std::vector<Weighted> parts;
    for (const PlacedStep& placed : row.steps) parts.push_back({of(*placed.step), placed.step->device_us()});
    return weighted_mean(parts);
}

inline auto counter_of(CounterOf counter) {
    return [counter](Step step) { return counters_of(step).*counter; };
}

/// The sum of an amount of each step.
template <class Of>
auto total(Of of) {
    return [of](Row row) { return sum(row, of); };
}

/// A figure of each step; of several their mean, weighted by time.
template <class Of>
auto mean(Of of) {
    return [of](Row row) { return step_mean(row, of); };
}

/// A value that is made of counters: they are read a step, so that of several kernels none can claim them.
template <class Of>
auto counted(Of of) {
    return [of](Row row) {
        const bool is_part = row.kernel != nullptr && row.steps.front().step->kernels.size() > 1;
        return is_part ? Value(NoValue::na) : cell(std::invoke(of, row));
    };
}

/// What a column shows in a row.
struct ValueOf {
    std::function<Value(Row)> get;
    template <class Of>
    ValueOf(Of of) : get([of](Row row) { return cell(std::invoke(of, row)); }) {}  // not explicit: rows stay short
};

/// In place of decimals: text, which stands on the left and may lose its middle.
inline constexpr int as_text = -1;

/// A row of the list of columns, in the order in which it reads well.
struct Entry {
    std::string name, header, unit;  ///< without a header the name stands there
    int decimals = 0;
    ValueOf value;
    std::string what;
};
using Entries = std::vector<Entry>;
Column column_of(const Entry& entry);

/// The parts of the list. columns_identity.cpp: what is computed.
Entries pyprof_columns(), point_columns(), sweep_columns(), step_columns();
/// columns_figures.cpp: how it was.
Entries time_columns(), kernel_columns(), executed_columns(), memory_columns(), counter_columns();
/// columns_causes.cpp: why it took that long.
Entries cause_columns();

}  // namespace kbench::column
