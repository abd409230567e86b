// The roofline: performance against arithmetic intensity, a mark for each step, group and level of memory.
#include "analysis/explain/roofline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr std::string_view unfused_shape = "unfused";

std::string hover_of(const RooflinePoint& mark, const std::string& what) {
    return fmt::format("{}\n{}, {}\n{}: {}, {} FLOP/B\nroof {}: {} of it", what, time_text(mark.time_us),
                       format_flop_per_s(mark.flop_per_s),
                       mark.unfused ? "unfused traffic at DRAM" : std::string(name(mark.level)),
                       format_bytes(mark.bytes), significant(mark.intensity), mark.roof, percent(mark.roof_share));
}

/// The marks of one view after another, the steps last: there are many, and a reader asks for them. Op kinds and layers
/// are in the time breakdown's order, slowest first.
RooflineChart chart_of(const Point& point, const Explanation& explanation) {
    const Roofline& roofline = explanation.roofline;
    RooflineChart chart;
    for (const auto& [roofs, is_bandwidth] : {std::pair{&roofline.bandwidths, true}, {&roofline.units, false}})
        for (const Roof& roof : *roofs)
            chart.roofs.push_back({roof.ceiling, roof.per_s, is_bandwidth, std::string(name(roof.origin))});
    for (const BreakdownGroup& group : explanation.breakdown.by_op) chart.groups.push_back(group.name);
    for (const BreakdownGroup& group : explanation.breakdown.by_layer) chart.layers.push_back(group.name);
    std::map<int, std::size_t> positions;
    for (std::size_t i = 0; i < point.steps.size(); ++i) positions.emplace(point.steps[i].index, i);
    const std::pair<const char*, const std::vector<RooflinePoint>*> views[] = {
        {"layers", &roofline.layers}, {"ops", &roofline.ops}, {"model", &roofline.model}, {"steps", &roofline.steps}};
    for (const auto& [view, marks] : views) {
        if (marks->empty()) continue;
        chart.views.emplace_back(view);
        for (const RooflinePoint& mark : *marks) {
            const auto found = positions.find(mark.step);
            const StepResult* step = found == positions.end() ? nullptr : &point.steps[found->second];
            RooflineMark& drawn = chart.marks.emplace_back();
            drawn.flop_per_byte = mark.intensity;
            drawn.flop_per_s = mark.flop_per_s;
            if (!mark.op.empty()) drawn.group = place_in(chart.groups, mark.op);
            if (!mark.layer.empty()) drawn.layer = place_in(chart.layers, layer_group(mark.layer));
            drawn.shape = place_in(chart.shapes, std::string(mark.unfused ? unfused_shape : name(mark.level)));
            drawn.view = chart.views.size() - 1;
            drawn.size = mark.time_us;
            drawn.label = step != nullptr ? step->layer : mark.name;
            drawn.hover = hover_of(mark, step != nullptr ? step_text(*step) : mark.name);
            if (step != nullptr) drawn.key = found->second;
        }
    }
    // Where no bytes were counted, unfused traffic is all there is.
    const auto unfused = std::ranges::find(chart.shapes, unfused_shape);
    if (unfused != chart.shapes.end() && contains(chart.shapes, name(Level::dram)))
        chart.hidden_shapes.push_back(static_cast<std::size_t>(unfused - chart.shapes.begin()));
    return chart;
}

}  // namespace

Section roofline_section(const SectionContext& context) {
    const Point& point = context.point();
    const Roofline& roofline = context.explanation().roofline;
    Section section{"Roofline"};
    section.is_only_on_page = true;
    RooflineChart chart = chart_of(point, context.explanation());
    if (!roofline.unavailable.empty() || chart.marks.empty() || roofline.units.empty()) {
        section.add(Paragraph{roofline.unavailable.empty() ? "no step has FLOPs and bytes for which there are roofs"
                                                           : roofline.unavailable,
                              Tone::missing});
        return section;
    }
    std::vector<std::string_view> absent;
    for (const std::string_view level : level_names)
        if (!contains(chart.shapes, level)) absent.push_back(level);
    const auto is_estimated = [](const ChartRoof& roof) { return roof.origin != name(Origin::measured); };
    if (std::ranges::any_of(chart.roofs, is_estimated))
        section.add(Paragraph{fmt::format("measured roofs; these are estimated from the machine's datasheet: {}",
                                          context.result().ceilings.unavailable),
                              Tone::missing});
    if (!absent.empty())
        section.add(Paragraph{
            fmt::format("marks at {}: {}", fmt::join(absent, ", "),
                        point.counters.unavailable.empty() ? "their bytes were not counted, or there is no roof"
                                                           : point.counters.unavailable),
            Tone::missing});
    section.add(Chart{
        "Performance against arithmetic intensity, log scales",
        "FLOPs are the cost model's, time is measured; bytes are counted where counters are, unfused traffic derived. Size: time.",
        std::move(chart)});
    return section;
}

}  // namespace kbench
