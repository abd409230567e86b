// All steps and all kernels of a point, with the columns of `kbench table` and what the explanation says of each step.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "analysis/explain/point_roofs.h"
#include "analysis/report/sections/sections.h"
#include "analysis/table/table_query.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr std::string_view columns_of_steps =
    "step layer op time_us share time_steps time_step_us provider kernel params tflop_per_s gb_per_s flops bytes dram_bytes dram_gb_per_s dram_over_unfused l2_over_unfused occ_theory occ_achieved sm_active ipc tensor_pipe_active tc executed_over_model mismatch gap_us event_low_us event_high_us n implementation absorbs";
constexpr std::string_view columns_of_kernels =
    "step sub layer op time_us share gap_us kernel grid block regs smem_static smem_dynamic local_bytes cluster occ_theory occ_achieved occ_limiter waves lost_last_wave occ_hint stream";
constexpr std::size_t explained_at = 5;  ///< the column from which on the explanation's stand

/// The steps of a point, or its kernels. A row's key is the position of its step.
Rows table_of(const SectionContext& context, std::string_view level, std::string_view columns) {
    std::istringstream words{std::string(columns)};
    const std::vector<std::string> names{std::istream_iterator<std::string>(words), {}};
    const QueriedTable table =
        query_point(context.result(), context.index, {&find_level(level), false, {}, names, {}, {}});
    Rows rows;
    rows.is_long = true;
    rows.filters = {"op", "layer"};
    for (const Column& column : table.columns)
        rows.columns.push_back({.header = column.header, .align = column.align, .what = column.what});
    for (const TableRow& row : table.rows) {
        std::vector<std::string>& cells = rows.rows.emplace_back();
        for (const Column& column : table.columns) {
            const Value value = column.value(row);
            cells.push_back(value == Value(NoValue::na) ? "" : shown(column, value));
        }
        rows.keys.emplace_back(static_cast<std::size_t>(row.steps.front().step - context.point().steps.data()));
    }
    return rows;
}

/// A step's roof times, longest first: "DRAM 3.1 us, L2 2.0 us".
std::string roof_times_cell(const StepRoofTimes& roof_times) {
    return joined(roof_times.work, ", ", [](const RoofTime& roof_time) {
        return roof_time.us > 0 ? fmt::format("{} {}", roof_time.name(), time_text(roof_time.run_us.value)) : "";
    });
}

/// Three columns from `at` on: roof times, the share of the longest, the verdict.
void add_explanation(Rows& rows, const SectionContext& context) {
    const std::vector<StepRoofTimes>& roof_times = context.explanation().roof_times;
    const std::vector<StepFacts>& facts = context.explanation().facts.steps;
    const std::vector<Verdict>& verdicts = context.explanation().verdicts.steps;
    const TableColumn added[] = {{.header = "roof times",
                                  .align = Align::left,
                                  .what = "the time that the step's work takes at each roof, longest first"},
                                 {.header = "of roof %", .what = "the longest roof time over the step's time"},
                                 {.header = "verdict", .align = Align::left, .what = "the step's bottleneck"}};
    const auto at = static_cast<std::ptrdiff_t>(std::min(explained_at, rows.columns.size()));
    rows.columns.insert(rows.columns.begin() + at, std::begin(added), std::end(added));
    for (auto& cells : rows.rows) cells.insert(cells.begin() + at, std::size(added), "");
    rows.filters.emplace_back("verdict");
    for (std::size_t i = 0; i < std::min(roof_times.size(), rows.rows.size()); ++i) {
        auto cell = rows.rows[i].begin() + at;
        *cell++ = roof_times_cell(roof_times[i]);
        *cell++ =
            roof_times[i].binding() != nullptr ? fixed(100 * roof_times[i].binding_share(facts[i].time_us), 1) : "";
        if (verdicts.size() == roof_times.size()) *cell = verdict_text(verdicts[i]);
    }
}

/// Columns without a value in any row are not shown, and named.
std::string left_out(const Rows& rows) {
    std::vector<std::string> headers;
    for (std::size_t i = 0; i < rows.columns.size(); ++i)
        if (std::ranges::all_of(rows.rows, [i](const auto& cells) { return cells[i].empty(); }))
            headers.push_back(rows.columns[i].header);
    return headers.empty() ? ""
                           : fmt::format("Left out, for want of a value in any row: {}.", fmt::join(headers, ", "));
}

}  // namespace

Section steps_section(const SectionContext& context) {
    const Point& point = context.point();
    Section section{"All steps and kernels"};
    section.is_only_on_page = true;
    if (point.steps.empty()) {
        section.add(Paragraph{"the point has no steps", Tone::missing});
        return section;
    }
    Rows steps = table_of(context, "step", columns_of_steps), kernels = table_of(context, "kernel", columns_of_kernels);
    add_explanation(steps, context);
    if (!point.counters.unavailable.empty())
        section.add(Paragraph{"columns of counters: " + point.counters.unavailable, Tone::missing});
    const std::string without = left_out(steps);
    section.add(Section{"Steps", {std::move(steps), Paragraph{without}}});
    if (kernels.rows.empty())
        section.add(
            Paragraph{fmt::format("kernels: {}", point.activity.unavailable.empty() ? "none were recorded"
                                                                                    : point.activity.unavailable),
                      Tone::missing});
    else
        section.add(Section{"Kernels", {std::move(kernels)}, {}, "", true});
    return section;
}

}  // namespace kbench
