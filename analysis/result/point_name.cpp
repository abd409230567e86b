// See point_name.h.
#include "analysis/result/point_name.h"

#include <fmt/format.h>

namespace kbench {

std::string point_name(const Point& point) {
    return fmt::format("{}{}, batch {}{}, seq {}, {}, {}{}{}", point.model,
                       point.direction == "fwd" ? "" : " " + point.direction, point.batch,
                       point.batch_is_max ? " (max)" : "", point.seq, name(point.precision), point.backend,
                       point.attention == "fused" ? "" : ", attention " + point.attention,
                       point.repeat > 1 ? fmt::format(", repeat {}", point.repeat) : "");
}

}  // namespace kbench
