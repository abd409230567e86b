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
        case Line::residual: return "derived: what is left";
        default: return "measured";
    }
}

Rows group_rows(const std::vector<LedgerGroup>& groups, std::string_view what, double whole_us, int decimals) {
    Rows rows{{names(std::string(what)), figures("steps"), figures("ms"), figures("share %"), figures("gaps ms")}};
    for (const LedgerGroup& group : groups)
        rows.rows.push_back({group.name, std::to_string(group.steps), fixed(group.time_us * 1e-3, decimals),
                             share_cell(group.time_us, whole_us), fixed(group.lines.gaps_us() * 1e-3, decimals)});
    return rows;
}

/// The unit of the column is that of the end-to-end time, so that all lines add up by eye.
Rows line_rows(const Ledger& ledger, Depth depth) {
    const TimeUnit unit = time_unit(ledger.end_to_end_us * 1e-3);
    const double per_us = unit.per_ms * 1e-3;
    const int decimals = decimals_for(ledger.end_to_end_us * per_us, time_digits);
    Rows rows{{words("ledger"), figures(std::string(unit.name)), figures("share %"), words("what", 1, true)}};
    if (depth == Depth::full) rows.columns.push_back({"origin", Align::left});
    const auto add = [&](std::string_view name, double us, std::string_view what, std::string_view origin) {
        std::vector<std::string> cells{std::string(name), fixed(us * per_us, decimals),
                                       share_cell(us, ledger.end_to_end_us), std::string(what)};
        if (depth == Depth::full) cells.emplace_back(origin);
        rows.rows.push_back(std::move(cells));
    };
    for (std::size_t i = 0; i < line_count; ++i) {
        const Line line = line_at(i);
        if (ledger.total[line] != 0 || line == Line::residual)
            add(info(line).name, ledger.total[line], info(line).what, origin_of(line));
    }
    add("end to end", ledger.end_to_end_us, "median, without a profiler", "measured");
    return rows;
}

/// The whole model, which all lines add up to.
Chart line_chart(const Ledger& ledger) {
    BarChart bars{"ms", {"model"}, {}, true};
    for (std::size_t i = 0; i < line_count; ++i) {
        const LineInfo& line = info(line_at(i));
        const double us = ledger.total.us[i];
        if (us == 0) continue;
        ChartSeries& series = bars.series.emplace_back(ChartSeries{std::string(line.name)});
        series.add(us * 1e-3, fmt::format("{} {}\n{}", line.name, time_text(us), line.what));
        series.is_faint = line_at(i) >= Line::recording;
    }
    return {"The whole model, ms", "Kernels, the time between them, and corrections in grey.", std::move(bars)};
}

}  // namespace

Section ledger_section(const Ledger& ledger, Depth depth) {
    Section section{"Ledger"};
    if (!ledger.unavailable.empty()) {
        if (depth == Depth::full) section.add(Paragraph{ledger.unavailable, Tone::missing});
        return section;
    }
    if (ledger.end_to_end_us <= 0) return section;
    if (depth == Depth::full) section.add(line_chart(ledger));
    section.add(line_rows(ledger, depth));
    if (depth == Depth::summary) return section;
    const int decimals = decimals_for(ledger.end_to_end_us * 1e-3, time_digits);
    section.add(Paragraph{
        fmt::format(
            "The lines add up to the end-to-end median of {} ms by nature, as the residual is what is missing. Drift, {} ms, and the residual, {} ms, are explained by nothing; together they are {:.2f} % of it: the ledger {} within {:.0f} %.",
            fixed(ledger.end_to_end_us * 1e-3, decimals), fixed(ledger.total[Line::drift] * 1e-3, decimals),
            fixed(ledger.total[Line::residual] * 1e-3, decimals), 100 * ledger.unexplained_share(),
            ledger.closes() ? "closes" : "does NOT close", 100 * closing_tolerance),
        ledger.closes() ? Tone::plain : Tone::warning});
    section.add(
        Section{"By layer (* is every block)", {group_rows(ledger.by_layer, "layer", ledger.end_to_end_us, decimals)}});
    section.add(Section{"By op kind", {group_rows(ledger.by_op, "op", ledger.end_to_end_us, decimals)}});
    return section;
}

Section ledger_section(const SectionContext& context) {
    return ledger_section(context.explanation().ledger, context.depth);
}

Section marginal_section(const SectionContext& context) {
    const Ledger& ledger = context.explanation().ledger;
    Section section{"Marginal cost"};
    if (ledger.marginal.empty()) return section;
    section.add(Paragraph{
        "What the steps of an op kind add when they run twice, measured without a profiler, beside their share of the ledger (derived from recorded kernels)."});
    Rows rows{{names("op"), figures("ledger ms"), figures("its interval"), figures("marginal ms"),
               figures("95 % interval"), words("agree"), words("finding")}};
    for (const MarginalCheck& check : ledger.marginal) {
        const int decimals = decimals_for(std::max(check.ledger_ms, check.marginal_ms), time_digits);
        const auto interval = [decimals](double low, double high) {
            return fmt::format("{} to {}", fixed(low, decimals), fixed(high, decimals));
        };
        rows.rows.push_back({check.op, fixed(check.ledger_ms, decimals),
                             interval(check.ledger_low_ms, check.ledger_high_ms), fixed(check.marginal_ms, decimals),
                             interval(check.marginal_low_ms, check.marginal_high_ms), check.agrees ? "yes" : "NO",
                             check.finding});
    }
    section.add(std::move(rows));
    return section;
}

}  // namespace kbench
