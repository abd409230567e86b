// How an expectation for another machine is told.
#pragma once

#include <cstddef>
#include <string>

#include "analysis/compare/what_if.h"

namespace kbench {

/// The expected latency with its interval, by the binding roof there, by op kind and by layer, then the assumptions; or
/// in one line why there is none. `check`: beside a measurement there. `width`: of the terminal.
std::string write_what_if(const WhatIf& answer, std::size_t width, const WhatIfCheck* check = nullptr);
/// The same as Markdown: a heading of level 3, tables and a list.
std::string write_what_if_markdown(const WhatIf& answer, const WhatIfCheck* check = nullptr);

}  // namespace kbench
