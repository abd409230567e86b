// The writers: pure functions from a result to text. They measure nothing and know no device.
#pragma once

#include <string>

#include "analysis/result.h"

namespace kbench {

/// The summary for a terminal: environment, one block a point (performance, memory, verification, conditions), the sums
/// by op kind and by layer group, skips and warnings. `width`: columns of the terminal.
std::string write_terminal(const Result& result, int width);

/// steps.csv: one row a step of every point, a header, RFC 4180 quoting; numbers with full precision.
std::string write_steps_csv(const Result& result);

}  // namespace kbench
