// The columns that `kbench micro` adds to Google Benchmark's: one table for console, CSV, JSON and docs/micro.md, in
// the console's order.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/micro/session.h"

namespace kbench {

struct MicroColumn {
    std::string_view name, unit, what;
    std::optional<double> (*value)(const MicroFigures& figures);
    enum class Needs { nothing, gpu_counters, clock } needs = Needs::nothing;
};
std::span<const MicroColumn> micro_columns();

/// Names of those that have values on a machine that tells so much.
std::vector<std::string> micro_column_names(bool has_gpu_counters, bool has_clock);

}  // namespace kbench
