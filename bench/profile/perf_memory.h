// Inside of HostCounters: the sources of memory traffic and the ladder on which they are tried.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/profile/perf_system.h"
#include "kbench/quantity.h"

namespace kbench {

/// Between the last-level cache and DRAM, in bytes.
struct Traffic {
    Quantity read, write;
};

class TrafficCounter {
  public:
    virtual ~TrafficCounter() = default;
    /// What counts, and of whom.
    virtual std::string source() const = 0;
    virtual void start() = 0;
    /// Since the last start(); unavailable without one. May be called again.
    virtual Traffic stop() = 0;
};

/// The first source that opens, in the order of HostCounters; null where none does. Adds to `why_not` one line for each
/// better one, best first. `system` must outlive the counter.
std::unique_ptr<TrafficCounter> open_traffic(PerfSystem& system, std::vector<std::string>& why_not);

/// Why traffic is unavailable where none opens.
inline constexpr std::string_view no_traffic =
    "no counter of memory traffic here: neither a memory controller's nor last-level-cache misses";

}  // namespace kbench
