// The columns of `kbench micro` beside Google Benchmark's own: one table for the console, CSV, JSON and docs/micro.md.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "bench/micro/session.h"

namespace kbench {

struct MicroColumn {
    std::string_view name, unit, what;
    std::optional<double> (*value)(const MicroFigures& figures);
    bool counted = false;  ///< from hardware counters, so that it is left out where those of a GPU are not read
};
std::span<const MicroColumn> micro_columns();

}  // namespace kbench
