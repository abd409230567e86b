// A CPU with fewer of its threads for a while.
#pragma once

#include "bench/device/device.h"

namespace kbench {

/// While it lives, OpenMP has the first `threads` of a CPU's threads, and what is made or run has so many. Those that
/// come back afterwards are pinned as before. Nothing happens where that is as many as it had.
class FewerThreads {
  public:
    /// `device` must outlive it. Throws DeviceError where so many cannot be had.
    FewerThreads(const Device& device, int threads);
    ~FewerThreads();
    FewerThreads(const FewerThreads&) = delete;
    FewerThreads& operator=(const FewerThreads&) = delete;

  private:
    const DeviceInfo* changed_ = nullptr;  ///< null: nothing was
};

}  // namespace kbench
