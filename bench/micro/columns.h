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
    /// A console shows no column of what this machine does not tell.
    enum class Needs { nothing, gpu_counters, clock } needs = Needs::nothing;
};
std::span<const MicroColumn> micro_columns();

}  // namespace kbench
