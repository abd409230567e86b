// What `kbench doctor` says of the CPU time that a run would get, and what to do about it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/cpu_quota.h"
#include "kbench/result.h"

namespace kbench {

struct DoctorRow {
    std::string_view what;
    std::string_view state;  ///< ok, missing where it cannot be known, warning where it spoils times
    std::string text;
};

/// Threads, affinity, quota, load and governor. `load`: processes that ran or wanted to in the last minute; nothing
/// where the system does not tell.
std::vector<DoctorRow> cpu_time_rows(const HostInfo& host, const std::optional<CpuQuota>& quota,
                                     std::optional<double> load);

}  // namespace kbench
