// Hardware counters of a program's launches, joined with the steps that these launches made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/program/program_file.h"
#include "kbench/result.h"

namespace kbench {

/// Metrics by name from counters by name; a metric of which a counter is missing has no value.
using MetricsOf = std::function<std::map<std::string, double>(const std::map<std::string, double>& counters)>;

/// Which launch of an iteration, from 0, each of its kernels belongs to; none for copies and fills.
struct IterationLaunches {
    std::int64_t first = 0;  ///< index of the iteration's first launch in the process
    std::int64_t count = 0;
    std::vector<std::vector<std::int64_t>> of_step;  ///< launches of each step's kernels, each once
    std::vector<bool> waits = {};  ///< by launch: its kernel waits for other ranks, so that it has no counters
};

/// Fills the steps' counters, and passes, seconds and `unavailable` of the run. Counters of several iterations are
/// joined by launch, values of the same counter by their median. A step of several kernels has the sums of counters
/// that add up (".sum", ".avg"), and metrics of these alone. A launch whose kernels are in several steps, such as a
/// graph's, has no values of each, and one that waits for other ranks has none: `counters_discarded` says so.
void join_counters(std::vector<StepResult>& steps, CounterRun& run, const std::vector<CountedIteration>& counted,
                   const IterationLaunches& launches, const MetricsOf& metrics_of);

}  // namespace kbench
