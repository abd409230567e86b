// Throttle masks as names.
#include "bench/profile/machine_state.h"

#include <fmt/format.h>

namespace kbench {

std::vector<std::string> throttle_names(std::uint64_t mask) {
    std::vector<std::string> names;
    for (const ThrottleReason& reason : throttle_reasons) {
        if ((mask & reason.bit) != 0 && reason.effect != ThrottleEffect::none) names.emplace_back(reason.name);
        mask &= ~reason.bit;
    }
    if (mask != 0) names.push_back(fmt::format("{:#x}", mask));
    return names;
}

}  // namespace kbench
