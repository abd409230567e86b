#include "analysis/explain/time_breakdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {
namespace {

std::string share_cell(double part, double whole) { return whole > 0 ? fixed(100 * part / whole, 1) : std::string(); }

/// What a line's figure rests on.
std::string_view origin_of(Line line) {
    switch (line) {
        case Line::recording: return "estimated: calibrated on chains of kernels";
        case Line::records: return "measured: two runs";
        case Line::residual: return "derived: what is left";
        default: return "measured";
    }
}

Rows group_rows(const std::vector<BreakdownGroup>& groups, std::string_view what, double whole_us, int decimals) {
    Rows rows{{names(std::string(what)), figures("steps"), figures("ms"), figures("share %"), figures("gaps ms"),
               figures("host wait ms")}};
    for (const BreakdownGroup& group : groups) {
        const double wait_us = group.lines[Line::host_wait];
        rows.rows.push_back({group.name, std::to_string(group.steps), fixed(group.time_us * 1e-3, decimals),
                             share_cell(group.time_us, whole_us), fixed(group.lines.gaps_us() * 1e-3, decimals),
                             wait_us > 0 ? fixed(wait_us * 1e-3, decimals) : ""});
    }
    return rows;
}

/// The unit of the column is that of the end-to-end time, so that all lines add up by eye.
Rows line_rows(const TimeBreakdown& breakdown, Depth depth) {
    const TimeUnit unit = time_unit(breakdown.end_to_end_us * 1e-3);
    const double per_us = unit.per_ms * 1e-3;
    const int decimals = decimals_for(breakdown.end_to_end_us * per_us, time_digits);
    Rows rows{{words("time breakdown"), figures(std::string(unit.name)), figures("share %"), words("what", 1, true)}};
    if (depth == Depth::full) rows.columns.push_back({"origin", Align::left});
    const auto add = [&](std::string_view name, double us, std::string_view what, std::string_view origin) {
        std::vector<std::string> cells{std::string(name), fixed(us * per_us, decimals),
                                       share_cell(us, breakdown.end_to_end_us), std::string(what)};
        if (depth == Depth::full) cells.emplace_back(origin);
        rows.rows.push_back(std::move(cells));
    };
    for (std::size_t i = 0; i < line_count; ++i) {
        const Line line = line_at(i);
        if (breakdown.total[line] != 0 || line == Line::residual)
            add(info(line).name, breakdown.total[line], info(line).what, origin_of(line));
    }
    add("end to end", breakdown.end_to_end_us, "median, without a profiler", "measured");
    return rows;
}

/// The whole model, which all lines add up to.
Chart line_chart(const TimeBreakdown& breakdown) {
    BarChart bars{"ms", {"model"}, {}, true};
    for (std::size_t i = 0; i < line_count; ++i) {
        const LineInfo& line = info(line_at(i));
        const double us = breakdown.total.us[i];
        if (us == 0) continue;
        ChartSeries& series = bars.series.emplace_back(ChartSeries{std::string(line.name)});
        series.add(us * 1e-3, fmt::format("{} {}\n{}", line.name, time_text(us), line.what));
        series.is_faint = line_at(i) >= Line::recording;
    }
    return {"The whole model, ms", "Kernels, the time between them, and corrections in grey.", std::move(bars)};
}

}  // namespace

Section time_breakdown_section(const TimeBreakdown& breakdown, Depth depth) {
    Section section{"Time breakdown"};
    if (!breakdown.unavailable.empty()) {
        if (depth == Depth::full) section.add(Paragraph{breakdown.unavailable, Tone::missing});
        return section;
    }
    if (breakdown.end_to_end_us <= 0) return section;
    if (depth == Depth::full) section.add(line_chart(breakdown));
    section.add(line_rows(breakdown, depth));
    if (depth == Depth::summary) return section;
    const int decimals = decimals_for(breakdown.end_to_end_us * 1e-3, time_digits);
    section.add(Paragraph{
        fmt::format(
            "The lines always add up to the end-to-end median of {} ms: the residual is whatever is left. Drift, {} ms, and the residual, {} ms, have no explanation; together they are {:.2f} % of it, {} the {:.0f} % that this breakdown should reach.",
            fixed(breakdown.end_to_end_us * 1e-3, decimals), fixed(breakdown.total[Line::drift] * 1e-3, decimals),
            fixed(breakdown.total[Line::residual] * 1e-3, decimals), 100 * breakdown.unexplained_share(),
            breakdown.closes() ? "within" : "MORE than", 100 * closing_tolerance),
        breakdown.closes() ? Tone::plain : Tone::warning});
    section.add(Section{"By layer (* is every block)",
                        {group_rows(breakdown.by_layer, "layer", breakdown.end_to_end_us, decimals)}});
    section.add(Section{"By op kind", {group_rows(breakdown.by_op, "op", breakdown.end_to_end_us, decimals)}});
    return section;
}

Section time_breakdown_section(const SectionContext& context) {
    return time_breakdown_section(context.explanation().breakdown, context.depth);
}

Section marginal_section(const SectionContext& context) {
    const TimeBreakdown& breakdown = context.explanation().breakdown;
    Section section{"Marginal cost"};
    if (breakdown.marginal.empty()) return section;
    section.add(Paragraph{
        "What the steps of an op kind add when they run twice, measured without a profiler, compared with their share of the time breakdown (derived from recorded kernels)."});
    Rows rows{{names("op"), figures("breakdown ms"), figures("its interval"), figures("marginal ms"),
               figures("95 % interval"), words("agree"), words("finding")}};
    for (const MarginalCheck& check : breakdown.marginal) {
        const int decimals = decimals_for(std::max(check.breakdown_ms, check.marginal_ms), time_digits);
        const auto interval = [decimals](double low, double high) {
            return fmt::format("{} to {}", fixed(low, decimals), fixed(high, decimals));
        };
        rows.rows.push_back(
            {check.op, fixed(check.breakdown_ms, decimals), interval(check.breakdown_low_ms, check.breakdown_high_ms),
             fixed(check.marginal_ms, decimals), interval(check.marginal_low_ms, check.marginal_high_ms),
             check.agrees ? "yes" : "NO", check.finding});
    }
    section.add(std::move(rows));
    return section;
}

}  // namespace kbench
