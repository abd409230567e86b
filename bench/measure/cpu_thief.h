// The thief on a CPU's cores.
#pragma once

#include "bench/measure/thief.h"

namespace kbench {

/// As share_with_thief.
DeviceWithThief share_cpu_with_thief(Device& device, const Roofs& roofs);

}  // namespace kbench
