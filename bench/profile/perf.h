// Hardware counters of the host through perf_event_open(2): memory traffic from the best source that this machine
// offers, cycles and instructions of this process. What is missing is unavailable with its reason, never zero.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/profile/perf_system.h"
#include "kbench/quantity.h"

namespace kbench {

/// Counts of one interval. A count that was scaled up because its counter was shared (time_enabled / time_running) is
/// `estimated` and says so.
struct HostCounts {
    /// Bytes between the last-level cache and DRAM. Memory controllers count the whole machine, cache misses are a
    /// lower bound of this process's reads and say nothing of writes.
    Quantity dram_read_bytes, dram_write_bytes, dram_bytes;
    /// Counts all threads of this process, in user mode.
    Quantity cycles, instructions;
    /// Seconds that those threads were on a core, summed over threads; a sleeping thread adds nothing.
    Quantity cpu_seconds;
};

/// Mean clock of the cores while they ran this process, in MHz: cycles / cpu_seconds. Time in the kernel counts as
/// time but not as cycles.
Quantity core_clock_mhz(const HostCounts& counts);
/// Instructions per cycle.
Quantity instructions_per_cycle(const HostCounts& counts);

class ThreadCounters;
class TrafficCounter;

/// Memory traffic and core counters of the host between start() and stop(). Sources of traffic, the first that opens:
///   1. uncore_imc*: read and write CAS commands of Intel's memory controllers,
///   2. last-level-cache misses times 64 B.
/// Where none does, the caller falls back to its cost model. Sources: perf_event_open(2), and in the Linux source
/// Documentation/ABI/testing/sysfs-bus-event_source-devices-events and -format, and
/// Documentation/admin-guide/perf-security.rst.
class HostCounters {
  public:
    /// Call it when all threads exist (after the first OpenMP region): threads that run now and the threads that they
    /// start later are counted. Never throws for want of hardware or permission. `system` must outlive the counters.
    static HostCounters open(PerfSystem& system);
    HostCounters(HostCounters&&) noexcept;
    HostCounters& operator=(HostCounters&&) noexcept;
    ~HostCounters();

    /// What counts memory traffic and of whom, for a report; empty where nothing does.
    std::string traffic_source() const;
    /// One line for each better source of traffic that failed, best first; then one for the core counters if they did.
    const std::vector<std::string>& why_not() const { return why_not_; }

    /// Takes the counters' values: one system call a counter, some microseconds where it is another core's.
    void start();
    /// What was counted since the last start(); unavailable without one. May be called again.
    HostCounts stop();

  private:
    HostCounters();
    std::unique_ptr<TrafficCounter> traffic_;
    std::unique_ptr<ThreadCounters> threads_;
    std::vector<std::string> why_not_;
    std::string no_core_pmu_;
};

}  // namespace kbench
