// What a CPU's experiments may take together: on few cores each would take longer than all that is measured before.
#include <limits>
#include <string>

#include "bench/measure/point/parts.h"

namespace kbench {

double experiments_left_s(const PartContext& at) {
    if (at.device.is_gpu()) return std::numeric_limits<double>::infinity();
    double left_s = at.options.experiments_s;
    for (const std::string phase : {"sm_scaling", "theft", "size_scaling"})
        if (const auto spent = at.point.phase_seconds.find(phase); spent != at.point.phase_seconds.end())
            left_s -= spent->second;
    return left_s;
}

}  // namespace kbench
