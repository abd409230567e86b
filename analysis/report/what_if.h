// How an expectation for another machine is told.
#pragma once

#include "analysis/compare/what_if.h"
#include "analysis/report/document.h"

namespace kbench {

/// The expected latency with its interval, by the binding roof there, by op kind and by layer, then the assumptions; or
/// why there is none. `check`: beside a measurement there.
Section what_if_section(const WhatIf& answer, const WhatIfCheck* check = nullptr);

}  // namespace kbench
