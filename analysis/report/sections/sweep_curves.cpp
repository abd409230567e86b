#include "analysis/report/sections/sweep_curves.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "kbench/statistics.h"
#include "models/base/lists.h"

namespace kbench {

double SweepPlace::median() const { return summarise(values).median; }

double median_ms(const SectionContext& context) { return context.point().end_to_end->latency.summary_ms.median; }

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

std::string place_name(const Point& point, const std::vector<const Axis*>& axes, const Axis* along) {
    std::vector<std::string> parts;
    for (const Axis* axis : axes)
        if (const AxisValue* value = axis == along ? nullptr : point.axes.find(axis->name))
            parts.push_back(said(*axis, *value));
    return parts.empty() ? std::string(name(point.precision())) : joined(parts, ", ");
}

std::vector<SweepCurve> curves_along(const std::vector<SectionContext>& points, const std::vector<const Axis*>& axes,
                                     const Axis& along, PointFigure figure) {
    std::vector<SweepCurve> curves;
    for (const SectionContext& context : points) {
        const AxisValue* at = context.point().axes.find(along.name);
        const std::optional<double> value = at != nullptr ? figure(context) : std::nullopt;
        if (!value) continue;
        SweepCurve& curve = entry(curves, &SweepCurve::name, place_name(context.point(), axes, &along));
        curve.places.try_emplace(*at, SweepPlace{{}, context}).first->second.values.push_back(*value);
    }
    return curves;
}

}  // namespace kbench
