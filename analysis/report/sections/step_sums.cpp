// Where the time goes by op kind and by layer.
#include "analysis/explain/step_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/report/sections/sections.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr std::size_t most_layers = 8;

/// The kinds that the steps compute besides the one that names them: "+bias +gelu".
std::string fused_cell(const StepGroup& group) {
    return joined(group.ops, " ", [&](const std::string& op) { return op == group.name ? "" : "+" + op; });
}

std::string implementation_cell(const StepGroup& group) {
    return group.implementations.size() == 1 ? group.implementations.front()
                                             : fmt::format("{} variants", group.implementations.size());
}

/// A rate; empty where the steps have no work of that kind (an embedding that only copies has no FLOPs).
std::string rate(double value) { return value > 0 ? significant(value) : std::string(); }

/// Columns that both tables share, after their names.
std::vector<std::string> group_cells(const StepGroup& group, int decimals) {
    return {std::to_string(group.steps), fixed(group.time_us / 1e3, decimals), fixed(100 * group.share, 1),
            rate(group.tflop_per_s()), rate(group.gb_per_s())};
}

/// Idle time before the first kernel of each step but the first.
double gaps_between_steps_ms(const Point& point) {
    double us = 0;
    for (const StepResult& step : point.steps)
        if (!step.kernels.empty()) us += step.kernels.front().gap_us;
    return us / 1e3;
}

/// How the steps, timed one by one, compare with the whole.
std::string closing_line(const Point& point, const StepSums& sums) {
    if (!point.end_to_end || point.end_to_end->latency.summary_ms.median <= 0) return {};
    const double whole_ms = point.end_to_end->latency.summary_ms.median, sum_ms = sums.time_us / 1e3;
    const TimeUnit unit = time_unit(whole_ms);
    const int decimals = decimals_for(whole_ms * unit.per_ms, time_digits);
    const auto show = [&](double ms) { return fixed(ms * unit.per_ms, decimals); };
    const std::string how = point.activity.runs > 0
                                ? fmt::format("Recorded kernels, with {} {} between steps not in the sum, come to",
                                              show(gaps_between_steps_ms(point)), unit.name)
                                : std::string("Steps measured one by one sum to");
    return fmt::format("{} {} {}, {:.1f} % of the {}'s median of {} {}: {} {} {}.", how, show(sum_ms), unit.name,
                       100 * sum_ms / whole_ms, is_graph(point) ? "CUDA graph" : timed_words(point).name,
                       show(whole_ms), unit.name, show(std::abs(sum_ms - whole_ms)), unit.name,
                       sum_ms >= whole_ms ? "more" : "less");
}

}  // namespace

Section ops_section(const SectionContext& context) {
    const Point& point = context.point();
    Section section{"Where the time goes"};
    if (point.steps.empty()) return section;
    const StepSums sums = by_op_kind(point);
    if (sums.groups.empty()) return missing_section(section.title, "the steps were not timed");
    const int decimals = decimals_for(sums.time_us / 1e3, time_digits);
    Rows rows{{words("op"), words("provider"), figures("steps"), figures("total ms"), figures("share %"),
               figures("TFLOP/s"), figures("GB/s"), words("fused with", 2), words("implementation", 1, true)}};
    std::size_t steps = 0;
    for (const StepGroup& group : sums.groups) {
        std::vector<std::string> cells = {group.name, point.program ? "" : joined(group.providers, " ")};
        std::ranges::move(group_cells(group, decimals), std::back_inserter(cells));
        cells.push_back(fused_cell(group));
        cells.push_back(implementation_cell(group));
        rows.rows.push_back(std::move(cells));
        steps += group.steps;
    }
    rows.rows.push_back({"sum", "", std::to_string(steps), fixed(sums.time_us / 1e3, decimals), "100.0"});
    section.add(std::move(rows));
    if (sums.untimed_steps > 0)
        section.add(Paragraph{fmt::format("{} of {} steps have no time.", sums.untimed_steps, point.steps.size())});
    section.add(Paragraph{closing_line(point, sums)});
    return section;
}

Section layers_section(const SectionContext& context) {
    const StepSums sums = by_layer(context.point());
    const std::size_t shown = std::min(most_layers, sums.groups.size());
    Section section{shown == sums.groups.size()
                        ? std::string("By layer, slowest first (* is every block)")
                        : fmt::format("By layer, the slowest {} of {} (* is every block)", shown, sums.groups.size())};
    const int decimals = decimals_for(sums.time_us / 1e3, time_digits);
    Rows rows{{names("layer"), figures("steps"), figures("total ms"), figures("share %"), figures("TFLOP/s"),
               figures("GB/s"), words("ops", 1, true)}};
    for (std::size_t i = 0; i < shown; ++i) {
        const StepGroup& group = sums.groups[i];
        std::vector<std::string> cells = {group.name};
        std::ranges::move(group_cells(group, decimals), std::back_inserter(cells));
        cells.push_back(joined(group.ops, ", "));
        rows.rows.push_back(std::move(cells));
    }
    section.add(std::move(rows));
    return section;
}

}  // namespace kbench
