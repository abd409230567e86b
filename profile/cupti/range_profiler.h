// CUPTI's range profiler: hardware counters of ranges of work, replayed by the caller until every counter was
// collected.
//
//     for (bool all = false; !all; all = profiler.stop()) {  // the device is idle
//         profiler.start();
//         run();                                             // the same in every pass, and waited for
//     }
//     profiler.decode();
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/cupti/cupti_host.h"

struct CUpti_RangeProfiler_Object;

namespace kbench::cuda {

/// What the driver lets this process count on the GPU of `context`, for CuptiHost. Throws DeviceError with the reason
/// and the fix where that is nothing (no permission, a virtual GPU, ...).
std::vector<std::uint8_t> counter_availability(CUcontext context);

/// What the ranges of a pass are.
enum class RangeOf {
    /// Each kernel, as long as Nsight Compute has it. Copies and fills have no range.
    kernel,
    /// Each call, with all that it enqueues. Up to tens of microseconds longer than its kernels: CUPTI begins and ends
    /// such a range with work of its own on a GPU that is idle meanwhile.
    call,
};

/// Counts `counters` in ranges of `context`. One at a time in a process.
class RangeProfiler {
  public:
    /// `ranges`: how many there are in a pass. Throws DeviceError.
    RangeProfiler(CUcontext context, const std::string& chip, const std::vector<std::string>& counters,
                  RangeOf range_of, std::size_t ranges);
    ~RangeProfiler();
    RangeProfiler(const RangeProfiler&) = delete;
    RangeProfiler& operator=(const RangeProfiler&) = delete;

    std::size_t passes() const { return passes_; }
    const std::vector<std::string>& counters() const { return counters_; }

    /// Begins a pass, ends one; the device must be idle. stop() says whether it was the last.
    void start();
    bool stop();
    /// Around the `range`th call of a pass, where ranges are calls. Wait for the device before pop().
    void push(std::size_t range);
    void pop();
    /// After the last pass. Throws DeviceError where the passes had another number of ranges than announced.
    void decode();

    RangeOf range_of() const { return range_of_; }
    /// Values of one range after decode(), in order of the calls or the kernels' launches, parallel to counters(); not
    /// a number where the counter has none.
    std::vector<double> values(std::size_t range) const;

  private:
    /// One range more than announced: CUPTI says nothing of ranges for which there is no room.
    std::size_t room() const { return ranges_ + 1; }
    void configure();

    RangeOf range_of_;
    std::size_t ranges_;
    std::vector<std::string> counters_;
    std::size_t passes_ = 0;
    CuptiHost host_;
    CUpti_RangeProfiler_Object* profiler_ = nullptr;
    std::vector<std::uint8_t> config_, data_;
    std::vector<std::size_t> index_of_range_;  ///< in the counter data
};

}  // namespace kbench::cuda
