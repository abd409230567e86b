// A GPU as kbench counts on it: by CUDA's number, in the current context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profile/cupti/cupti_host.h"
#include "profile/cupti/range_profiler.h"

namespace kbench::cuda {

/// The chip of the GPU with CUDA's number `device`. Throws DeviceError without one.
std::string chip_of_device(int device);

/// Makes the current context where there is none, and counts in it; see RangeProfiler.
RangeProfiler range_profiler(int device, const std::vector<std::string>& counters, RangeOf range_of,
                             std::size_t ranges);

/// Throws UsageError with the nearest names unless the chip of `host` has `counter`.
void require_counter(const CuptiHost& host, const std::string& counter);

/// Runs all passes of `profiler`. `before_pass` is called outside the counting; then `run` so many times, which must
/// enqueue the same work in every pass. Throws DeviceError, also where that made another number of ranges than
/// announced.
void collect(RangeProfiler& profiler, const std::function<void(std::size_t pass)>& before_pass, std::size_t calls,
             const std::function<void(std::size_t call)>& run);

}  // namespace kbench::cuda
