// How an expectation for another machine is told.
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/compare/what_if.h"
#include "analysis/report/document.h"

namespace kbench {

/// The expected latency with its interval, by the binding roof there, by op kind and by layer, then the assumptions; or
/// why there is none. `check`: beside a measurement there.
Section what_if_section(const WhatIf& answer, const WhatIfCheck* check = nullptr);

/// The same for other programs: the point, both machines, milliseconds; `check` is null where nothing was measured
/// there.
nlohmann::ordered_json what_if_json(const WhatIf& answer, const WhatIfCheck* check = nullptr);

}  // namespace kbench
