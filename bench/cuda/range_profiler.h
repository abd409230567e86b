// CUPTI's range profiler: hardware counters of ranges of work, replayed by the caller until every counter was
// collected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/cuda/cupti_host.h"

struct CUpti_RangeProfiler_Object;

namespace kbench::cuda {

/// What the driver lets this process count on the GPU with CUDA's number `device`, for CuptiHost. Throws DeviceError
/// with the reason and the fix where that is nothing (no permission, a virtual GPU, ...).
std::vector<std::uint8_t> counter_availability(int device);

/// Counts `counters` in ranges of the current context. One at a time in a process.
class RangeProfiler {
  public:
    /// `ranges`: how many there are in a pass. Throws DeviceError.
    RangeProfiler(int device, const std::string& chip, const std::vector<std::string>& counters, std::size_t ranges);
    ~RangeProfiler();
    RangeProfiler(const RangeProfiler&) = delete;
    RangeProfiler& operator=(const RangeProfiler&) = delete;

    std::size_t passes() const { return passes_; }
    const std::vector<std::string>& counters() const { return counters_; }

    /// Runs all passes. `before_pass` is called outside the counting; `run_range` must enqueue the work of a range, the
    /// same in every pass. Throws DeviceError.
    void collect(const std::function<void(std::size_t pass)>& before_pass,
                 const std::function<void(std::size_t range)>& run_range);

    /// Values of one range after collect(), parallel to counters(); not a number where the counter has none.
    std::vector<double> values(std::size_t range) const;

  private:
    void configure();
    void start();
    bool stop();
    void decode();

    int device_;
    std::size_t ranges_;
    std::vector<std::string> counters_;
    std::size_t passes_ = 0;
    CuptiHost host_;
    CUpti_RangeProfiler_Object* profiler_ = nullptr;
    std::vector<std::uint8_t> config_, data_;
    std::vector<std::size_t> index_of_range_;  ///< in the counter data
};

}  // namespace kbench::cuda
