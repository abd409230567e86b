// Where the time goes, by cause: what each line is, how it was measured and what gives it back.
#include "analysis/explain/causes.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {
namespace {

bool is_nothing(const Interval& us) { return us.value == 0 && us.high <= 0; }

std::string cause_share(double us, double whole_us) { return whole_us > 0 ? fixed(100 * us / whole_us, 1) : ""; }

/// The whole, a row a cause. A summary leaves out the interval and how a line was measured.
Rows cause_rows(const CauseGroup& whole, Depth depth) {
    const bool is_full = depth == Depth::full;
    const TimesInUnit shown(whole.time_us * 1e-3);
    Rows rows{{words("by cause"), figures(std::string(shown.unit())), figures("share %")}};
    if (is_full) rows.columns.push_back(figures("from"));
    if (is_full) rows.columns.push_back(figures("to"));
    rows.columns.push_back(words("what gives it back", 1, true));
    if (is_full) rows.columns.push_back(words("what it is"));
    if (is_full) rows.columns.push_back(words("measured by"));
    for (std::size_t i = 0; i < cause_count; ++i) {
        const Interval& us = whole.lines.us[i];
        if (is_nothing(us)) continue;
        const CauseInfo& cause = info(cause_at(i));
        std::vector<std::string> cells{std::string(cause.name), shown(us.value * 1e-3),
                                       cause_share(us.value, whole.time_us)};
        if (is_full)
            for (const double end : {us.low, us.high}) cells.push_back(shown(end * 1e-3));
        cells.push_back(whole.change(cause_at(i)));
        if (is_full)
            for (const std::string_view text : {cause.what, cause.how}) cells.emplace_back(text);
        rows.rows.push_back(std::move(cells));
    }
    return rows;
}

/// The cause but useful work of which most can be given back.
std::string largest_change(const CauseGroup& group) {
    std::size_t largest = cause_count;
    for (std::size_t i = 0; i < cause_count; ++i)
        if (cause_at(i) != Cause::useful && !group.change(cause_at(i)).empty() &&
            (largest == cause_count || group.lines.us[i].value > group.lines.us[largest].value))
            largest = i;
    return largest == cause_count
               ? ""
               : fmt::format("{}: {}", info(cause_at(largest)).name, group.change(cause_at(largest)));
}

/// A column a cause, in milliseconds.
Rows cause_columns(std::string_view what, const std::vector<CauseGroup>& groups, double whole_us) {
    Rows rows{{names(std::string(what)), figures("steps"), figures("ms")}};
    for (std::size_t i = 0; i < cause_count; ++i) rows.columns.push_back(figures(std::string(info(cause_at(i)).name)));
    rows.columns.push_back(words("the largest that a change gives back"));
    const int decimals = decimals_for(whole_us * 1e-3, time_digits);
    for (const CauseGroup& group : groups) {
        std::vector<std::string> cells{group.name, std::to_string(group.steps), fixed(group.time_us * 1e-3, decimals)};
        for (const Interval& us : group.lines.us)
            cells.push_back(is_nothing(us) ? "" : fixed(us.value * 1e-3, decimals));
        cells.push_back(largest_change(group));
        rows.rows.push_back(std::move(cells));
    }
    return rows;
}

/// The whole and each op kind, as sums of causes.
Chart cause_chart(const Causes& causes) {
    std::vector<const CauseGroup*> groups{&causes.whole};
    for (const CauseGroup& group : causes.by_op) groups.push_back(&group);
    return {"Time by cause, ms", "Each line is measured by itself; what is left is not explained.", cause_bars(groups)};
}

/// Whether it may be called an explanation, and what it lacks.
Paragraph verdict_on(const CauseGroup& whole) {
    std::string text = fmt::format(
        "The lines add up to the end-to-end time. What they miss, summed over the steps without signs, with drift and residual, is {} of it: {}.",
        percent(whole.misfit_share()),
        whole.is_explanation() ? "this is an explanation"
                               : fmt::format("under {} it would be an explanation", percent(explanation_tolerance)));
    if (whole.unfitted_us > 0)
        text += fmt::format(
            " Steps with {} of the time were not timed at several sizes: their main loop and fixed time stay unexplained.",
            percent(whole.unfitted_us / whole.time_us));
    return {text};
}

}  // namespace

BarChart cause_bars(const std::vector<const CauseGroup*>& groups) {
    BarChart bars{"ms", {}, {}, true};
    for (const CauseGroup* group : groups) bars.labels.push_back(group->name);
    for (std::size_t i = 0; i < cause_count; ++i) {
        if (std::ranges::all_of(groups, [i](const CauseGroup* group) { return is_nothing(group->lines.us[i]); }))
            continue;
        const CauseInfo& cause = info(cause_at(i));
        ChartSeries& series = bars.series.emplace_back(ChartSeries{std::string(cause.name)});
        series.is_faint = cause_at(i) == Cause::unexplained;
        for (const CauseGroup* group : groups) {
            const double us = group->lines.us[i].value;
            const std::string change = group->change(cause_at(i));
            series.add(us * 1e-3, fmt::format("{}: {} {}\n{}{}", group->name, cause.name, time_text(us), cause.what,
                                              change.empty() ? "" : "\n" + change));
        }
    }
    return bars;
}

Section causes_section(const SectionContext& context) {
    const Causes& causes = context.explanation().causes;
    Section section{"Where the time goes, by cause"};
    if (!causes.unavailable.empty() || causes.whole.steps == 0) return {};
    if (context.point().program && !causes.has_fits) return {};  // its breakdown has the two kinds of gaps apart
    if (!context.is_full()) {
        // Without times by size it has little to add to the lines that a summary shows anyway.
        if (!causes.has_fits || !context.explanation().concludes()) return {};
        return {"", {cause_rows(causes.whole, Depth::summary)}};
    }
    section.add(verdict_on(causes.whole));
    section.add(cause_chart(causes));
    section.add(cause_rows(causes.whole, Depth::full));
    section.add(Section{"By op kind, ms", {cause_columns("op", causes.by_op, causes.whole.time_us)}});
    section.add(
        Section{"By layer, ms (* is every block)", {cause_columns("layer", causes.by_layer, causes.whole.time_us)}});
    section.add(Paragraph{
        "What it cannot tell: fixed time and main loop come from the same work at other sizes, run alone; in the model a kernel may find its operands elsewhere. A step's uneven waves are taken out of both in proportion. Changes are what usually gives a line back; the milliseconds are the most that each can give."});
    return section;
}

}  // namespace kbench
