// A step's hardware counters as fields: `counters_of(step).dram_read_bytes`. The fields are the rows of
// bench/profile/metrics.txt, from which cmake/counter_fields.cmake writes them. Nobody else looks a counter up by its
// name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/facts/counter_fields.h"
#include "kbench/result.h"

namespace kbench {

/// One of the fields, such as &Counters::ipc.
using CounterOf = std::optional<double> Counters::*;

/// Those that were read; a counter of which metrics.txt has no row is in none of the fields. Without those per elapsed
/// cycle where these are withheld.
Counters counters_of(const StepResult& step);

/// Why figures per elapsed cycle or second of a step's counter range say nothing of its kernels; empty where they do. A
/// range may be much longer than they are: one of a GEMM's in a tf32 forward took 61 us where its record took 28 and
/// its SMs were active as long as that. Sums, such as bytes, instructions and active cycles, hold all the same.
std::string elapsed_withheld(const StepResult& step);

/// Cycles in which a scheduler had a warp, mean over them: a sum, so that it holds for a long range too.
std::optional<double> scheduler_cycles(const StepResult& step);

/// A counter that a user names, as a column or a track does. Nothing where it was not read or is withheld.
std::optional<double> counter_named(const StepResult& step, std::string_view name);

/// The counters whose names begin with `prefix`, in alphabetical order, by what follows it.
std::vector<std::pair<std::string, double>> counters_by_state(const StepResult& step, std::string_view prefix);

/// As metrics.txt calls it.
std::string_view name_of(CounterOf counter);

/// Read and written; nothing unless both were counted.
std::optional<double> dram_traffic(const Counters& counters);

}  // namespace kbench
