// The memory of the plan, by what it holds.
#include <fmt/format.h>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"

namespace kbench {

Section memory_section(const SectionContext& context) {
    BarChart bars{"GB", {}, {{"planned"}}};
    for (std::size_t i = 0; i < role_count; ++i) {
        const auto bytes = static_cast<double>(context.point().memory.bytes[i]);
        if (bytes <= 0) continue;
        const std::string role(title(static_cast<Role>(i)));
        bars.labels.push_back(role);
        bars.series.front().add(bytes * 1e-9, fmt::format("{}\n{}", role, format_bytes(bytes)));
    }
    return {"Memory", {Chart{"Planned memory by role, GB", "derived: the plan", std::move(bars)}}};
}

}  // namespace kbench
