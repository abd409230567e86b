// What `kbench doctor` says of the CPU time that a run would get, what to do about it, and what follows from all of its
// rows. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/cpu_quota.h"
#include "kbench/error.h"
#include "kbench/result.h"

namespace kbench {

/// It spoils figures, and the text says what to do.
inline constexpr std::string_view doctor_warning = "warning";
/// It is there, and nothing can be measured on it until that is mended.
inline constexpr std::string_view doctor_unusable = "unusable";

struct DoctorRow {
    std::string_view what;
    std::string_view state;  ///< ok, missing where it cannot be known, or one of those above
    std::string text;
};

/// Threads, affinity, quota, load and governor. `load`: processes that ran or wanted to in the last minute; nothing
/// where the system does not tell.
std::vector<DoctorRow> cpu_time_rows(const HostInfo& host, const std::optional<CpuQuota>& quota,
                                     std::optional<double> load);

/// Whether a reason says what to do: something that this machine never has is no warning.
bool has_fix(std::string_view reason);

struct DoctorConclusion {
    std::string text;  ///< one line
    ExitCode exit;
};
/// From the names of such rows.
DoctorConclusion doctor_conclusion(std::span<const std::string> unusable, std::span<const std::string> mendable);

}  // namespace kbench
