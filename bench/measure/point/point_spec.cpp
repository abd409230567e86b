// The names of points.
#include "bench/measure/point/point_spec.h"

namespace kbench {

std::string PointSpec::name() const {
    std::string text, last;
    for (const Axis* axis : axes_in_order()) {
        const AxisValue* value = axes.find(axis->name);
        if (value == nullptr || axis->order == 0 || (!axis->always_told && axes.is_usual(*axis))) continue;
        const std::string part =
            (axis->kind == AxisKind::count ? std::string(axis->name) : "") + asked_text(*axis, *value);
        std::string& end = axis->role == AxisRole::again ? last : text;
        end += (end.empty() ? "" : "-") + part;
    }
    return last.empty() ? text : text + "-" + last;
}

}  // namespace kbench
