// The thief on a CPU's cores.
#pragma once

#include <string>

#include "bench/measure/point/thief.h"

namespace kbench {

/// Why a CPU has no room for a thief beside its work; empty where it has.
std::string why_no_thief(const Device& device);

/// As share_with_thief.
DeviceWithThief share_cpu_with_thief(Device& device, const Roofs& roofs);

}  // namespace kbench
