// What the kernels of a row are, means by weight, and columns that are made of counters.
#include "analysis/table/columns_builders.h"

#include <algorithm>

#include "models/base/lists.h"

namespace kbench::column {

Column column_of(const Entry& entry) {
    const bool is_text = entry.decimals == as_text;
    return {.name = entry.name,
            .header = entry.header.empty() ? entry.name : entry.header,
            .unit = entry.unit,
            .what = entry.what,
            .align = is_text ? Align::left : Align::right,
            .shortens = is_text,
            .decimals = is_text ? 0 : entry.decimals,
            .value = entry.value.get};
}

bool is_recorded(Row row) {
    const auto has_kernels = [](const PlacedStep& placed) { return !placed.step->kernels.empty(); };
    return !row.steps.empty() && (row.point->activity.runs > 0 || std::ranges::all_of(row.steps, has_kernels));
}

std::vector<const KernelResult*> kernels_of(Row row) {
    if (row.kernel != nullptr) return {row.kernel};
    std::vector<const KernelResult*> kernels;
    if (!is_recorded(row)) return kernels;
    for (const PlacedStep& placed : row.steps)
        for (const KernelResult& kernel : placed.step->kernels) kernels.push_back(&kernel);
    return kernels;
}

std::vector<const KernelResult*> launched_kernels_of(Row row) {
    std::vector<const KernelResult*> kernels = kernels_of(row);
    std::erase_if(kernels, [](const KernelResult* kernel) { return kernel->moved_bytes.has_value(); });
    return kernels;
}

static std::int64_t moved_bytes_of(Step step) {
    std::int64_t bytes = 0;
    for (const KernelResult& kernel : step.kernels) bytes += kernel.moved_bytes.value_or(0);
    return bytes;
}

/// Whether a program's step has no cost, and moves nothing either.
static bool is_unknown(Row row, Step step) {
    return row.point != nullptr && row.point->program && !step.has_cost() && moved_bytes_of(step) == 0;
}

std::optional<double> flops_of(Row row, Step step) {
    return is_unknown(row, step) ? std::nullopt : std::optional(step.cost.flops);
}

std::optional<double> bytes_of(Row row, Step step) {
    if (is_unknown(row, step)) return std::nullopt;
    return step.cost.bytes() > 0 ? step.cost.bytes() : static_cast<double>(moved_bytes_of(step));
}

std::function<Value(Row)> kernel_names(std::string KernelResult::*name, std::string StepResult::*otherwise) {
    const auto of_step = [=](Step step) {
        if (step.kernels.empty()) return otherwise != nullptr ? step.*otherwise : std::string();
        return joined(step.kernels, "+", name);
    };
    return [=](Row row) { return row.kernel != nullptr ? cell(row.kernel->*name) : of_steps(of_step)(row); };
}

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

}  // namespace kbench::column
