// Work on some of a GPU's SMs, with every kernel recorded: what experiments with SMs have in common.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "bench/device/device.h"
#include "bench/profile/profiler.h"

namespace kbench {

/// Work captured on the stream of a part of the GPU. Memory stays where it is.
class WorkOnPart {
  public:
    /// `ranges` must be of the stream of `part`, which must outlive it. Runs them once.
    WorkOnPart(std::vector<WorkRange> ranges, Device& part);
    RangeTimes times(double seconds, const RecordedLaunches& around = {}) {
        return profiler_->time_ranges(*graph_, seconds, around);
    }

  private:
    std::unique_ptr<Profiler> profiler_;
    std::unique_ptr<DeviceGraph> graph_;
};

/// Its times, for what takes a function; `work` must outlive that.
inline auto times_of(WorkOnPart& work) {
    return [&work](double seconds, const RecordedLaunches& around) { return work.times(seconds, around); };
}

/// Fills in what every run of recorded launches has: SmCountRun, ThiefRun.
template <class Run>
void set_times(Run& run, const RangeTimes& times) {
    // Records are of whole nanoseconds; medians may lie between two.
    const auto rounded_us = [](double us) { return std::round(us * 1e4) / 1e4; };
    run.sm_clock_mhz = times.sm_clock_mhz;
    run.launches = times.launches;
    run.latency_ms = times.latency_ms.median;
    for (const Summary& us : times.us) {
        run.step_us.push_back(rounded_us(us.median));
        run.step_low_us.push_back(rounded_us(us.ci_low));
        run.step_high_us.push_back(rounded_us(us.ci_high));
    }
}

}  // namespace kbench
