// Counters of ranges on a CPU: what perf_event_open gives here (perf.h), and where it gives no memory traffic what the
// ranges must move at the least, marked as an estimate.
#pragma once

#include <span>

#include "bench/profile/perf.h"
#include "bench/profile/profiler.h"

namespace kbench {

/// Counts each of `ranges` in one run of all. Metrics: cycles, instructions, ipc, core_clock, dram_read_bytes,
/// dram_write_bytes. A metric that this machine lacks is unavailable with the reason.
RangeCounters count_on_cpu(PerfSystem& perf, std::span<const WorkRange> ranges);

/// Throws UsageError for sets and metrics that a CPU does not have: there is the set core, and full is the same.
void check_cpu_request(const CounterRequest& request);

}  // namespace kbench
