// The kernels of every range from CUPTI's records of a whole graph, beside launches without records, and what recording
// does to kernels of known length.
#pragma once

#include <vector>

#include "bench/profile/cuda/captured_work.h"
#include "bench/profile/profiler.h"

namespace kbench::cuda {

/// Launches `all` on the GPU `device` `runs` times with records and as often without, in turn, each after `warm_up_s`
/// of the same work that keeps the device busy until then, so that clocks and power are those of the timing run; fewer
/// times, but three, where they take more than 10 s. `work`: what each range launches, in the order of capture. Throws
/// DeviceError where CUPTI records nothing or something else.
RangeKernels record_kernels(Device& device, DeviceGraph& all, const std::vector<CapturedWork>& work, int runs,
                            double warm_up_s);

/// As Profiler::time_ranges; `state` tells the clock.
RangeTimes time_ranges(Device& device, MachineState& state, DeviceGraph& all, const std::vector<CapturedWork>& work,
                       double seconds, const RecordedLaunches& around);

}  // namespace kbench::cuda
