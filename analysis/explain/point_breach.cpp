#include "analysis/explain/point_breach.h"

#include <fmt/format.h>

#include <algorithm>

namespace kbench {

std::optional<RoofBreach> worst_breach(const Explanation& point) {
    std::optional<RoofBreach> worst;
    for (std::size_t i = 0; i < point.roof_times.size(); ++i) {
        const StepFacts& step = point.facts.steps[i];
        for (const RoofTime& roof_time : point.roof_times[i].work) {
            // Bytes that nobody counted may never have left a cache.
            if (step.time_us <= 0 || (roof_time.level && roof_time.origin != Origin::measured)) continue;
            const double executed = roof_time.level ? 1 : step.executed_over_useful();
            const double excess = roof_time.least_us(point.facts.workers) * executed / step.time_us - 1;
            if (excess > std::max(breach_tolerance, worst ? worst->excess : 0))
                worst = {fmt::format("{} {}", step.step->index, step.step->layer), roof_time.roof.ceiling, excess};
        }
    }
    return worst;
}

}  // namespace kbench
