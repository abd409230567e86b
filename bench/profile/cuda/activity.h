// CUPTI's activity records of kernels: what was launched and when it ran. Recording stretches short kernels, so what is
// timed without records is timed elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "kbench/records.h"

namespace kbench::cuda {

/// One kernel as it ran.
struct KernelRecord {
    KernelResult launch;  ///< its name and shape; no times, no occupancy
    std::uint64_t start_ns = 0, end_ns = 0;
    std::uint64_t graph_node = 0;  ///< rises in the order of capture within one graph; 0 outside graphs
};

/// Records every kernel of this process while it lives; one at a time. Throws DeviceError when CUPTI refuses, as when
/// another profiler is attached.
class ActivityRecorder {
  public:
    ActivityRecorder();
    ~ActivityRecorder();
    ActivityRecorder(const ActivityRecorder&) = delete;
    ActivityRecorder& operator=(const ActivityRecorder&) = delete;

    /// Waits for the device; gives the kernels since the last call in order of their start. Throws DeviceError when
    /// records were dropped.
    std::vector<KernelRecord> take();
    /// The same without waiting: of kernels that have ended, as far as CUPTI has their records by now.
    std::vector<KernelRecord> take_ended();
};

}  // namespace kbench::cuda
