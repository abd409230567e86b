// Where and with what a result was measured.
#pragma once

#include <string>

#include "bench/device/device.h"
#include "bench/profile/machine_state.h"
#include "kbench/result.h"

namespace kbench {

/// Host, build, libraries and `device`, of which `state` knows what the driver tells; `command_line` as it was typed.
Environment describe_environment(const Device& device, const MachineState& state, const std::string& command_line);

/// "kbench 0.1.0 (1a2b3c4d5e6f), Release, GCC 12.2.0".
std::string version_text();

/// "2026-01-31T12:34:56Z".
std::string utc_now();

}  // namespace kbench
