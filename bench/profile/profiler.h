// What a device can tell of work beyond its time: the kernels that it launches, hardware counters, clocks and power.
// Works on ranges, pieces of work that are functions; what they compute it does not know.
//
//     std::vector<WorkRange> ranges{{.name = "first", .enqueue = ...}, ...};  // each has run once
//     profiler->watch(ranges);
//     RangeKernels kernels = profiler->record_kernels(*device->capture([&] { for (...) enqueue(range); }), 9, 1);
//     RangeCounters counters = profiler->count({.sets = {"core"}});
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/device/device.h"
#include "bench/profile/counters.h"
#include "bench/profile/machine_state.h"
#include "kbench/records.h"
#include "kbench/statistics.h"

namespace kbench {

/// A piece of work on a device's stream that is recorded and counted on its own.
struct WorkRange {
    std::string group, name;         ///< as NVTX shows them, one within the other; an empty one is not shown
    std::function<void()> enqueue;   ///< puts it on the stream; on a CPU it computes
    double least_read_bytes = 0;     ///< that the work must move from and to memory: stands in, as an estimate, for
    double least_written_bytes = 0;  ///< counters of a CPU that has none
};

/// Enqueues a range, within its names.
void enqueue(const WorkRange& range);

/// The kernels that each range launched.
struct RangeKernels {
    ActivityRun run;
    std::vector<std::vector<KernelResult>> by_range;
};

/// Metrics of each range, by name.
struct RangeCounters {
    CounterRun run;
    std::vector<std::map<std::string, double>> by_range;
    std::vector<std::string> discarded;  ///< by range; why its values are not to be used
    std::string warning;                 ///< in what the values are less than they might be; empty where in nothing
};

/// What each range took in launches of all of them.
struct RangeTimes {
    int launches = 0;
    Quantity sm_clock_mhz;  ///< mean meanwhile
    Summary latency_ms;     ///< one launch, by events, with records
    /// By range: from its first kernel's start to its last one's end, n is 0 without kernels; on a CPU its whole time.
    std::vector<Summary> us;
};

/// What is called around the launches that Profiler::time_ranges records: when the device is about to begin them, and
/// when it has just ended them.
struct RecordedLaunches {
    std::function<void()> begin = {}, end = {};
};

class Profiler {
  public:
    virtual ~Profiler() = default;

    /// Leaves the device as if nothing had been recorded or counted in this process, which could make what is timed
    /// next longer. Nothing may be recorded meanwhile.
    virtual void detach() = 0;
    /// From now on `ranges` are what is recorded and counted, and always the kernels that they launch now. Each must
    /// have run once before.
    virtual void watch(std::vector<WorkRange> ranges) = 0;
    /// Records every kernel of `runs` launches of `all` (fewer where they are long), a graph of the watched ranges in
    /// their order, in turn with as many without records, after `warm_up_s` of the same work, so that clocks are those
    /// of a busy device. Throws DeviceError where that cannot be done.
    virtual RangeKernels record_kernels(DeviceGraph& all, int runs, double warm_up_s) = 0;

    /// Records launches of `all`, a graph of the watched ranges in their order, for about half of `seconds`, after as
    /// long without records. Waits for nothing but them, so that a kernel on another stream may run meanwhile, if it
    /// began before. Throws DeviceError where that cannot be done. A CPU has no kernels to record: it runs the ranges
    /// and reads the clock between them.
    virtual RangeTimes time_ranges(DeviceGraph& all, double seconds, const RecordedLaunches& around) = 0;
    RangeTimes time_ranges(DeviceGraph& all, double seconds) { return time_ranges(all, seconds, {}); }

    /// Throws UsageError when this device has no metric that `request` names, as far as it can tell beforehand, or when
    /// it counts nothing at all and `request` requires it.
    virtual void check(const CounterRequest& request) const = 0;
    /// Runs all watched ranges as often as it takes to count what `request` names. Throws DeviceError where that cannot
    /// be done.
    virtual RangeCounters count(const CounterRequest& request) = 0;
    /// What kinds of counters there are here, found by trying: what it counts, and a value or why there is none.
    virtual std::vector<std::pair<std::string, Quantity>> probe_counters() = 0;

    virtual MachineState& machine_state() = 0;
};

/// The profiler of `device`, which must outlive it. One at a time counts in a process.
std::unique_ptr<Profiler> make_profiler(Device& device);

}  // namespace kbench
