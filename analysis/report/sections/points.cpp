// One row for each point of a sweep.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/explain/in_short.h"
#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {
namespace {

std::string text_on(const Point& point, const Axis& axis) {
    const AxisValue* value = point.axes.find(axis.name);
    return value ? text_of(*value) : std::string();
}

/// The axes on which the points differ: a column that has the same value in every row says nothing.
std::vector<const Axis*> shown_axes(const std::vector<Point>& points) {
    std::vector<const Axis*> shown;
    for (const Axis* axis : axes_in_tables()) {
        const auto differs = [&](const Point& point) {
            return text_on(point, *axis) != text_on(points.front(), *axis);
        };
        const bool is_told = axis->always_told && axis != &axis_named("model");  // the title names the only model
        if (is_told || std::ranges::any_of(points, differs)) shown.push_back(axis);
    }
    return shown;
}

/// What a row must not be read without.
std::string remark_on(const Point& point) {
    if (has_wrong_step(point.verification)) return ", WRONG";
    return point.end_to_end && !point.end_to_end->converged ? ", not converged" : "";
}

}  // namespace

bool is_told_as_sweep(const SectionContext& context) {
    const std::vector<Point>& points = context.explained.points();
    const auto is_done = [](const Point& point) { return point.status == PointStatus::done; };
    const auto told = context.is_full() ? std::ssize(points) : std::ranges::count_if(points, is_done);
    return told > 1 && !context.result().study;
}

Section points_section(const SectionContext& context) {
    const ExplainedResult& explained = context.explained;
    const std::vector<Point>& points = explained.points();
    const bool is_screen = context.depth == Depth::screen;
    const bool is_full = context.is_full(), is_study = is_full && context.result().study;
    Section section{"All points"};
    if (points.empty() || !(is_study || is_told_as_sweep(context))) return section;
    const auto is_first = [&](const Point& point) { return point.model() == points.front().model(); };
    if (std::ranges::all_of(points, is_first)) section.title += " of " + points.front().model();
    const bool is_ops = is_of_single_ops(context.result());
    const std::vector<const Axis*> axes = is_ops ? std::vector<const Axis*>{} : shown_axes(points);
    Rows rows;
    if (is_ops)
        for (const char* part : {"op", "provider", "precision", "direction", "shape", "cache"})
            rows.columns.push_back(words(part));
    for (const Axis* axis : axes)
        rows.columns.push_back({std::string(axis->name), axis->kind == AxisKind::count ? Align::right : Align::left});
    const TableColumn figures[] = {{"median ms"},
                                   {"95 % interval", Align::right, is_screen ? 4 : 1},
                                   {"tokens/s", Align::right, is_screen ? 1 : 0},
                                   {"TFLOP/s", Align::right, is_screen ? 2 : 0},
                                   {"J/sequence", Align::right, is_screen ? 3 : 2}};
    rows.columns.insert(rows.columns.end(), std::begin(figures), std::end(figures));
    if (is_full)
        for (const TableColumn& column : {TableColumn{"roof time %"}, {"residual %"}, {"verdict", Align::left}})
            rows.columns.push_back(column);
    if (is_screen)
        for (const char* header : {"bandwidth?", "bound"}) rows.columns.push_back(words(header));
    rows.columns.push_back({"status", Align::left, 0, !is_screen});
    for (std::size_t i = 0; i < points.size(); ++i) {
        const Point& point = points[i];
        std::vector<std::string> cells;
        if (is_ops) cells = benchmark_names(point);
        for (const Axis* axis : axes) cells.push_back(text_on(point, *axis));
        if (point.end_to_end) {
            const EndToEnd& times = *point.end_to_end;
            const Summary& ms = times.latency.summary_ms;
            const int decimals = decimals_for(ms.median, time_digits);
            const std::optional<double> energy = value_of(times.energy_per_sequence_j);
            cells.push_back(fixed(ms.median, decimals));
            cells.push_back(ms.has_interval()
                                ? fmt::format("[{}, {}]", fixed(ms.ci_low, decimals), fixed(ms.ci_high, decimals))
                                : "");
            cells.push_back(times.tokens_per_s && !is_ops ? significant(*times.tokens_per_s) : "");
            cells.push_back(ms.median > 0 ? significant(point.cost.flops / ms.median * 1e-9) : "");
            cells.push_back(energy ? significant(*energy) : "");
            if (is_full) {
                const TimeBreakdown& breakdown = explained.of(i).breakdown;
                const bool adds_up = breakdown.unavailable.empty() && breakdown.end_to_end_us > 0;
                const bool has_roofs = adds_up && breakdown.roofs_unavailable.empty();
                cells.push_back(has_roofs ? fixed(100 * breakdown.roof_times.useful_us / breakdown.end_to_end_us, 1)
                                          : "");
                cells.push_back(adds_up ? fixed(100 * breakdown.residual_share(), 2) : "");
                cells.emplace_back(name(explained.of(i).verdicts.model.bound));
            }
            if (is_screen) {
                cells.emplace_back(name(bandwidth_bound(explained.of(i)).answer));
                cells.emplace_back(name(explained.of(i).verdicts.model.bound));
            }
        }
        cells.resize(rows.columns.size() - 1);
        const std::string reason = is_full && !point.reason.empty() ? ": " + point.reason : "";
        cells.push_back(std::string(name(point.status)) + reason + (is_screen ? remark_on(point) : ""));
        rows.rows.push_back(std::move(cells));
    }
    if (is_full)
        section.add(Paragraph{"Times are measured; TFLOP/s (useful work), roof time and residual are derived."});
    section.add(std::move(rows));
    if (is_study)
        section.add(Paragraph{
            "report.html has all of each point; `kbench report` draws any file of points/ as a report of its own."});
    return section;
}

}  // namespace kbench
