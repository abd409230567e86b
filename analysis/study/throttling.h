// Why a device slows down without being asked to: heat and hardware. A power cap is none of these: it is how the device
// always is under load, and every figure says at which clock it was measured.
#pragma once

#include <string_view>

namespace kbench {

/// Among Conditions::throttle_reasons.
inline constexpr std::string_view slowing_reasons[] = {"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown",
                                                       "hw_power_brake"};

}  // namespace kbench
