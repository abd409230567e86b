// PC sampling: every so many cycles each scheduler notes what one of its warps does. A reason's share of the samples in
// cycles without an issue is its share of the stalled cycles. Counters of waiting warps only give an interval for that
// share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace kbench::cuda {

/// Samples the device of the current context while it lives; one at a time in a process, and never beside a
/// RangeProfiler or an ActivityRecorder: it begins by ending whatever CUPTI does. Throws DeviceError where CUPTI
/// refuses.
class StallSampler {
  public:
    StallSampler();
    ~StallSampler();
    StallSampler(const StallSampler&) = delete;
    StallSampler& operator=(const StallSampler&) = delete;

    /// From here on samples are taken; the device must be idle.
    void start();
    /// The samples since start() in cycles without an issue, by reason as CUPTI names it ("long_scoreboard"). The
    /// device must be idle. Throws DeviceError when samples were dropped or belong to no kernel.
    std::map<std::string, double> stop();

  private:
    struct Buffers;
    std::unique_ptr<Buffers> buffers_;
};

}  // namespace kbench::cuda
