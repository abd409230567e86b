// What holds for every figure.
#include <algorithm>

#include "analysis/report/sections/sections.h"

namespace kbench {

Section closing_section(const SectionContext& context) {
    const auto is_done = [](const Point& point) { return point.status == PointStatus::done; };
    if (!context.is_full() && std::ranges::none_of(context.result().points, is_done)) return {};
    return {
        "",
        {Paragraph{
            "Every figure is measured, derived (arithmetic on measured figures or on the cost model), estimated, or unavailable with its reason. GB is 1e9 bytes."}}};
}

}  // namespace kbench
