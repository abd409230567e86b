// What the points of a sweep say together, and curves over them along each axis on which they differ.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "analysis/explain/point_roofs.h"
#include "analysis/report/sections/sweep_curves.h"
#include "analysis/result/match.h"
#include "analysis/result/point_name.h"
#include "analysis/table/table_query.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// A figure of a point along the sweep; nothing where it is not known.
struct Figure {
    std::string_view title, unit, caption;
    PointFigure of;
};

std::optional<double> column_value(const SectionContext& context, const char* name) {
    const QueriedTable table =
        query_point(context.result(), context.index, {&find_level("point"), false, {}, {name}, {}, {}});
    if (table.columns.empty() || table.rows.empty()) return std::nullopt;
    const Value value = table.columns.front().value(table.rows.front());
    const double* number = std::get_if<double>(&value);
    return number != nullptr ? std::optional(*number) : std::nullopt;
}

/// The first of them are drawn at once, the others are folded.
constexpr std::ptrdiff_t open_figures = 2;
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

CurveSeries series_of(const std::string& name, const std::map<AxisValue, SweepPlace>& places, const Figure& figure) {
    std::vector<double> numbers;
    std::vector<std::string> words;
    ChartSeries y{name};
    for (const auto& [at, place] : places) {
        if (const auto* number = std::get_if<std::int64_t>(&at)) numbers.push_back(static_cast<double>(*number));
        words.push_back(text_of(at));
        y.values.push_back(place.median());
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
    Section section{std::string(along.in_full())}, others{"Other figures"};
    others.is_folded = true;
    for (const Figure& figure : drawn_figures) {
        const auto at = &figure - drawn_figures;
        CurveChart chart{{std::string(along.in_full()), along.kind == AxisKind::count}, {"", at == 0, at != 0}, {}};
        for (const SweepCurve& curve : curves_along(points, all, along, figure.of))
            chart.series.push_back(series_of(curve.name, curve.places, figure));
        (at < open_figures ? section : others)
            .add(
                Chart{fmt::format("{}, {}", figure.title, figure.unit), std::string(figure.caption), std::move(chart)});
    }
    section.add(std::move(others));
    return section;
}

}  // namespace

Section sweep_section(const SectionContext& context) {
    Section section{context.is_full() ? "What the points say" : ""};
    if (!is_told_as_sweep(context) || is_of_single_ops(context.result())) return section;
    std::vector<SectionContext> points;
    for (std::size_t i = 0; i < context.explained.points().size(); ++i)
        if (is_measured(context.explained.points()[i])) points.push_back({context.explained, context.depth, i});
    if (is_of_ranks(context.result())) {
        if (context.is_full()) section.title = "What the ranks say";
        for (const std::string& sentence : rank_answer(points)) section.add(Paragraph{sentence, Tone::lead});
        return section;
    }
    const std::vector<const Axis*> all = differing_axes(points);
    for (const std::string& sentence : sweep_answer(points, all)) section.add(Paragraph{sentence, Tone::lead});
    if (!context.is_full()) return section;
    std::vector<Section> along;
    for (const Axis* axis : all) along.push_back(along_axis(points, all, *axis));
    if (along.size() > 1) {
        section.add(Section{"", {}, std::move(along), "Along"});
    } else if (!along.empty()) {
        for (Block& block : along.front().blocks) section.add(std::move(block));
        section.sections = std::move(along.front().sections);
    }
    return section;
}

}  // namespace kbench
