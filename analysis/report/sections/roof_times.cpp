#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "analysis/explain/time_breakdown.h"
#include "analysis/report/sections/sections.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr double noteworthy_roof_time = 0.01;  ///< share of the time
constexpr std::size_t most_units = 3;
constexpr double charted_roof_time = 0.05;  ///< likewise, of some layer
constexpr std::size_t most_charted = 8;     ///< as many colours as readers tell apart

/// "L2 54 [53, 55], fp16_tensor 53 [52, 55]": percent of the time.
std::string roof_times_cell(const RoofTimeSums& sums, double time_us) {
    return joined(sums.by_roof, ", ", [&](const RoofTimeSum& sum) {
        if (sum.is_busy_time || sum.us.high < noteworthy_roof_time * time_us) return std::string();
        const auto share = [&](double us) { return 100 * us / time_us; };
        return fmt::format("{} {:.0f} [{:.0f}, {:.0f}]", sum.name, share(sum.us.value), share(sum.us.low),
                           share(sum.us.high));
    });
}

std::string units_cell(const RoofTimeSums& sums, double time_us) {
    const auto is_shown = [&](const RoofTimeSum& sum) {
        return sum.is_busy_time && sum.us.value >= noteworthy_roof_time * time_us;
    };
    const auto text = [&](const RoofTimeSum& sum) {
        return fmt::format("{} {:.0f}", sum.name, 100 * sum.us.value / time_us);
    };
    return joined(sums.by_roof | std::views::filter(is_shown) | std::views::take(most_units), ", ", text);
}

Rows group_rows(const TimeBreakdown& breakdown, const std::vector<BreakdownGroup>& groups, std::string_view what) {
    double time_us = 0;
    for (const BreakdownGroup& group : groups) time_us += group.time_us;
    const bool has_units = std::ranges::any_of(breakdown.roof_times.by_roof, &RoofTimeSum::is_busy_time);
    Rows rows{{names(std::string(what)), figures("ms"), figures("longest %"), figures("tied %"),
               words("roofs, % of the time [from, to]")}};
    if (has_units) rows.columns.push_back({"busiest units, % of the time", Align::left});
    const int decimals = decimals_for(time_us * 1e-3, time_digits);
    const auto add = [&](std::string_view name, double us, const RoofTimeSums& sums) {
        if (us <= 0) return;
        std::vector<std::string> cells{std::string(name), fixed(us * 1e-3, decimals),
                                       fixed(100 * sums.longest_us.value / us, 1), fixed(100 * sums.tied_us / us, 1),
                                       roof_times_cell(sums, us)};
        if (has_units) cells.push_back(units_cell(sums, us));
        rows.rows.push_back(std::move(cells));
    };
    for (const BreakdownGroup& group : groups) add(group.name, group.time_us, group.roof_times);
    add("all", time_us, breakdown.roof_times);
    return rows;
}

/// The roofs that roof time a noteworthy part of the time of some layer, longest of the model first.
std::vector<std::string> charted_roofs(const TimeBreakdown& breakdown) {
    std::vector<std::string> names;
    for (const RoofTimeSum& roof : breakdown.roof_times.by_roof) {
        const auto is_long = [&](const BreakdownGroup& group) {
            return std::ranges::any_of(group.roof_times.by_roof, [&](const RoofTimeSum& sum) {
                return !sum.is_busy_time && sum.name == roof.name && sum.us.value >= charted_roof_time * group.time_us;
            });
        };
        if (!roof.is_busy_time && names.size() < most_charted && std::ranges::any_of(breakdown.by_layer, is_long))
            names.push_back(roof.name);
    }
    return names;
}

/// The time of each group, and below it its roof times.
Chart group_chart(std::string title, const TimeBreakdown& breakdown, const std::vector<BreakdownGroup>& groups) {
    BarChart bars{"ms", {}, {{.name = "time", .is_faint = true}}};
    for (const BreakdownGroup& group : groups) {
        bars.labels.push_back(group.name);
        bars.series.front().add(group.time_us * 1e-3,
                                fmt::format("{}, {} steps\n{}", group.name, group.steps, time_text(group.time_us)));
    }
    for (const std::string& roof : charted_roofs(breakdown)) {
        ChartSeries& series = bars.series.emplace_back(ChartSeries{roof});
        for (const BreakdownGroup& group : groups) {
            const auto is_it = [&](const RoofTimeSum& sum) { return !sum.is_busy_time && sum.name == roof; };
            const auto sum = std::ranges::find_if(group.roof_times.by_roof, is_it);
            if (sum == group.roof_times.by_roof.end())
                series.add(Interval::exactly(no_number), "");
            else
                series.add(scaled(sum->us, 1e-3),
                           fmt::format("{} {}, {} to {}\n{}", roof, time_text(sum->us.value), time_text(sum->us.low),
                                       time_text(sum->us.high), group.name));
        }
    }
    return {
        std::move(title),
        "The time, and below it the roof times, which overlap: where two are as long, neither alone is the bottleneck. Roofs under 5 % of every layer are in the table alone.",
        std::move(bars)};
}

}  // namespace

Section roof_times_section(const SectionContext& context) {
    const TimeBreakdown& breakdown = context.explanation().breakdown;
    Section section{"Roof times"};
    if (!breakdown.unavailable.empty() || breakdown.end_to_end_us <= 0) return section;
    if (!breakdown.roofs_unavailable.empty()) return missing_section(section.title, breakdown.roofs_unavailable);
    const PointFacts& facts = context.explanation().facts;
    if (has_no_known_work(facts)) return missing_section(section.title, std::string(no_known_work));
    section.add(Paragraph{
        "A roof time is the time that the steps' work takes at one roof, at the clock of this run. Roofs work at the same time, so roof times overlap and do not add up. Longest: the longest roof time of each step, summed; the time cannot be shorter. Tied: the time of steps whose two longest roof times are equal within their intervals (of the roof, the clock and the count). Units: how long the busiest units worked, counted in cycles and not derived from a roof."});
    section.add(Paragraph{unknown_work_text(facts)});
    section.add(group_chart("By op kind, ms", breakdown, breakdown.by_op));
    section.add(group_chart("By layer of all blocks, ms (* is every block)", breakdown, breakdown.by_layer));
    section.add(group_rows(breakdown, breakdown.by_layer, "layer"));
    section.add(Section{"By op kind, the same", {group_rows(breakdown, breakdown.by_op, "op")}});
    return section;
}

}  // namespace kbench
