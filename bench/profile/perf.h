// Hardware counters of the host through perf_event_open(2): memory traffic from the best source that this machine
// offers, cycles and instructions of this process. What is missing is unavailable with its reason, never zero.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kbench/quantity.h"

namespace kbench {

/// One counter: the fields of the same names of perf_event_attr in perf_event_open(2).
struct PerfEventSpec {
    std::uint32_t type = 0;
    std::uint64_t config = 0, config1 = 0, config2 = 0;
    bool user_only = false;  ///< exclude_kernel and exclude_hv, which uncore PMUs refuse
    bool inherit = false;    ///< also counts the threads that the counted one starts from now on

    bool operator==(const PerfEventSpec&) const = default;
};

/// What read(2) gives with PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING, in that order. Times are
/// in ns; running is less than enabled where more events were wanted than there are counters.
struct PerfReading {
    std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};

/// The few calls by which counters are found and read, so that tests can play any machine.
class PerfSystem {
  public:
    virtual ~PerfSystem() = default;
    /// perf_event_open(2) of a counter that counts at once: a file descriptor, or -errno. `pid` is a thread and `cpu`
    /// -1, or `pid` -1 and `cpu` one of those that the PMU's cpumask names.
    virtual int open(const PerfEventSpec& spec, int pid, int cpu) = 0;
    /// Bytes read, or -errno. Fewer bytes than a PerfReading has leave it undefined; 0 means that the event is broken.
    virtual long read(int fd, PerfReading& reading) = 0;
    virtual void close(int fd) noexcept = 0;
    /// A small file below /proc or /sys without white space at its end; none where it cannot be read.
    virtual std::optional<std::string> text(const std::filesystem::path& file) = 0;
    /// Names in a directory, sorted; empty where there is no such directory.
    virtual std::vector<std::string> entries(const std::filesystem::path& directory) = 0;
    virtual bool exists(const std::filesystem::path& path) = 0;
    /// Thread ids of this process.
    virtual std::vector<int> threads() = 0;
};

class LinuxPerfSystem final : public PerfSystem {
  public:
    /// Files are looked up below `root`; the system calls are the running kernel's.
    explicit LinuxPerfSystem(std::filesystem::path root = "/") : root_(std::move(root)) {}

    int open(const PerfEventSpec& spec, int pid, int cpu) override;
    long read(int fd, PerfReading& reading) override;
    void close(int fd) noexcept override;
    std::optional<std::string> text(const std::filesystem::path& file) override;
    std::vector<std::string> entries(const std::filesystem::path& directory) override;
    bool exists(const std::filesystem::path& path) override;
    std::vector<int> threads() override;

  private:
    std::filesystem::path root_;
};

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
