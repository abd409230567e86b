// Counters of steps on a CPU: what perf_event_open gives here (perf.h), and where it gives no memory traffic the cost
// model's, marked as an estimate.
#pragma once

#include <functional>
#include <vector>

#include "bench/device/backend.h"
#include "bench/profile/perf.h"
#include "models/cost.h"

namespace kbench {

/// Counts each of `costs.size()` steps in one forward; `run_step` computes a step, `costs` are what each must do at the
/// least. Metrics: cycles, instructions, ipc, core_clock, dram_read_bytes, dram_write_bytes and, where reads and writes
/// cannot be told apart, dram_total_bytes. A metric that this machine lacks is unavailable with the reason.
StepCounters count_on_cpu(PerfSystem& perf, const std::vector<Cost>& costs,
                          const std::function<void(std::size_t step)>& run_step);

/// Throws UsageError for sets and metrics that a CPU does not have: there is the set core, and full is the same.
void check_cpu_request(const CounterRequest& request);

}  // namespace kbench
