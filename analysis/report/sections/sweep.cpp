// Curves over the points of a sweep, along each axis on which they differ.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/explain/point_roofs.h"
#include "analysis/report/sections/sections.h"
#include "analysis/result/point_name.h"
#include "analysis/table/table_query.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// A figure of a point along the sweep; nothing where it is not known.
struct Figure {
    std::string_view title, unit, caption;
    std::optional<double> (*of)(const SectionContext& context);
};

std::optional<double> column_value(const SectionContext& context, const char* name) {
    const QueriedTable table =
        query_point(context.result(), context.index, {&find_level("point"), false, {}, {name}, {}, {}});
    if (table.columns.empty() || table.rows.empty()) return std::nullopt;
    const Value value = table.columns.front().value(table.rows.front());
    const double* number = std::get_if<double>(&value);
    return number != nullptr ? std::optional(*number) : std::nullopt;
}

double median_ms(const SectionContext& context) { return context.point().end_to_end->latency.summary_ms.median; }

constexpr Figure drawn_figures[] = {
    {"Time of one run", "ms", "measured; log scale",
     [](const SectionContext& context) { return std::optional(median_ms(context)); }},
    {"Throughput", "tokens/s", "measured",
     [](const SectionContext& context) { return context.point().end_to_end->tokens_per_s; }},
    {"Useful work", "TFLOP/s", "derived: FLOPs of the cost model over the latency",
     [](const SectionContext& context) -> std::optional<double> {
         if (median_ms(context) <= 0) return std::nullopt;
         return context.point().cost.flops / median_ms(context) * 1e-9;
     }},
    {"Occupancy, achieved", "%", "counted, weighted by time",
     [](const SectionContext& context) { return column_value(context, "occ_achieved"); }},
    {"Occupancy, theoretical", "%", "from the launches, weighted by time",
     [](const SectionContext& context) { return column_value(context, "occ_theory"); }},
    {"Longest roof times, share of the latency", "%", "the longest roof time of each step, over the latency",
     [](const SectionContext& context) -> std::optional<double> {
         const std::optional<double> share = roof_share(context.explanation().breakdown);
         return share ? std::optional(100 * *share) : std::nullopt;
     }},
    {"Energy a sequence", "J", "measured",
     [](const SectionContext& context) { return value_of(context.point().end_to_end->energy_per_sequence_j); }},
};

/// The axes on which the points differ: those of a sweep, then hardware; counts with the most values first.
std::vector<const Axis*> differing_axes(const std::vector<SectionContext>& points) {
    std::vector<std::pair<const Axis*, std::size_t>> found;
    for (const AxisRole role : {AxisRole::what, AxisRole::where})
        for (const Axis& axis : axes()) {
            if (axis.role != role || !(axis.sweeps || role == AxisRole::where)) continue;
            std::vector<AxisValue> values;
            for (const SectionContext& context : points)
                if (const AxisValue* value = context.point().axes.find(axis.name)) add_once(values, *value);
            if (values.size() > 1) found.emplace_back(&axis, axis.kind == AxisKind::count ? values.size() : 0);
        }
    std::ranges::stable_sort(found, std::greater(), &std::pair<const Axis*, std::size_t>::second);
    std::vector<const Axis*> differing;
    for (const auto& [axis, count] : found) differing.push_back(axis);
    return differing;
}

/// What tells a curve along `along` from the others.
std::string curve_name(const Point& point, const std::vector<const Axis*>& all, const Axis& along) {
    std::vector<std::string> parts;
    for (const Axis* axis : all)
        if (const AxisValue* value = axis == &along ? nullptr : point.axes.find(axis->name))
            parts.push_back(said(*axis, *value));
    return parts.empty() ? std::string(name(point.precision())) : joined(parts, ", ");
}

/// The median over the repeats.
double median_of(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// The same point and its repeats.
struct Place {
    std::vector<double> values;
    SectionContext first;
};

CurveSeries series_of(const std::string& name, const std::map<AxisValue, Place>& places, const Figure& figure) {
    std::vector<double> numbers;
    std::vector<std::string> words;
    ChartSeries y{name};
    for (const auto& [at, place] : places) {
        if (const auto* number = std::get_if<std::int64_t>(&at)) numbers.push_back(static_cast<double>(*number));
        words.push_back(text_of(at));
        y.values.push_back(median_of(place.values));
        const std::string roof = binding_roof(place.first.explanation().breakdown);
        y.hover.push_back(
            fmt::format("{}\n{} {}{}{}", point_name(place.first.point()), significant(y.values.back()), figure.unit,
                        roof.empty() ? "" : "\nlongest roof time: " + roof,
                        place.values.size() > 1 ? fmt::format("\nmedian of {} repeats", place.values.size()) : ""));
    }
    if (numbers.size() == words.size()) return {std::move(numbers), std::move(y)};
    return {std::move(words), std::move(y)};
}

Section along_axis(const std::vector<SectionContext>& points, const std::vector<const Axis*>& all, const Axis& along) {
    Section section{std::string(along.in_full())};
    for (const Figure& figure : drawn_figures) {
        std::vector<std::string> names;
        std::vector<std::map<AxisValue, Place>> curves;
        for (const SectionContext& context : points) {
            const AxisValue* at = context.point().axes.find(along.name);
            const std::optional<double> value = at != nullptr ? figure.of(context) : std::nullopt;
            if (!value) continue;
            const std::size_t curve = place_in(names, curve_name(context.point(), all, along));
            curves.resize(names.size());
            curves[curve].try_emplace(*at, Place{{}, context}).first->second.values.push_back(*value);
        }
        const bool is_time = &figure == &drawn_figures[0];
        CurveChart chart{{std::string(along.in_full()), along.kind == AxisKind::count}, {"", is_time, !is_time}, {}};
        for (std::size_t i = 0; i < curves.size(); ++i) chart.series.push_back(series_of(names[i], curves[i], figure));
        section.add(
            Chart{fmt::format("{}, {}", figure.title, figure.unit), std::string(figure.caption), std::move(chart)});
    }
    return section;
}

}  // namespace

Section sweep_section(const SectionContext& context) {
    Section section{"Along the sweep"};
    section.is_only_on_page = true;
    if (is_of_single_ops(context.result())) return section;  // they are no repeats of each other
    std::vector<SectionContext> points;
    for (std::size_t i = 0; i < context.explained.points().size(); ++i)
        if (context.explained.points()[i].end_to_end) points.push_back({context.explained, context.depth, i});
    const std::vector<const Axis*> all = differing_axes(points);
    for (const Axis* axis : all) section.add(along_axis(points, all, *axis));
    if (section.sections.size() > 1)
        section.choice = "Along";
    else if (!section.sections.empty())
        section.blocks = std::exchange(section.sections, {}).front().blocks;
    return section;
}

}  // namespace kbench
