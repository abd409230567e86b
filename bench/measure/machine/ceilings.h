// The ceilings of the machine that a run is set against: remembered from an earlier run, or measured now.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/device.h"
#include "bench/profile/profiler.h"
#include "kbench/result.h"

namespace kbench {

/// automatic: remembered ones, measured where there are none.
enum class CeilingPolicy { automatic, measure, none };
inline constexpr std::string_view ceiling_policy_names[] = {"auto", "measure", "none"};
constexpr std::string_view name(CeilingPolicy policy) { return ceiling_policy_names[static_cast<int>(policy)]; }

struct CeilingRequest {
    CeilingPolicy policy = CeilingPolicy::automatic;
    double seconds = 4;  ///< that measuring all of them may take, about
};

/// Measures every ceiling of `device` (analysis/machine/ceilings.h), about `seconds` in all. One that it cannot do is
/// unavailable with its reason. Datasheet values are left empty.
std::vector<Ceiling> measure_ceilings(Device& device, double seconds);

/// What measures ceilings: a device, or a test's stand-in.
struct CeilingSource {
    std::string backend;    ///< cuda or cpu
    int probe_version = 1;  ///< counts up with every change of what is measured; remembered ceilings are then not used
    std::function<std::vector<Ceiling>(double seconds)> measure;
    MachineState* state = nullptr;  ///< seen throttling is not remembered; null where it cannot be seen
};
/// `profiler` is of `device`; both must outlive what is given.
CeilingSource ceiling_source(Device& device, Profiler& profiler);

/// What remembered ceilings are valid for: the device, its driver and clocks, and the loops that measured them.
std::string ceiling_key(const CeilingSource& source, const Environment& environment);

/// All that `file` remembers, by key. A file that is missing is empty; one that cannot be read or is not ours is too,
/// and `warnings` gets a line.
std::map<std::string, CeilingRun> read_ceiling_file(const std::filesystem::path& file,
                                                    std::vector<std::string>& warnings);

/// The ceilings of this machine as `request` wants them, with the datasheet's values. Where they cannot be measured
/// `unavailable` says why; nothing is thrown. Measured ones are remembered in `file`, but not those of a machine that
/// was throttled (see discards_sample), or while this process lacked its CPUs (see CpuShare::starved).
CeilingRun obtain_ceilings(const CeilingSource& source, const Environment& environment, const CeilingRequest& request,
                           const std::filesystem::path& file, std::vector<std::string>& warnings);

/// How often mend_low_ceilings lets ceilings be measured, the first time included.
inline constexpr int most_measurements = 5;

/// While a step of `result` is faster than a measured roof allows (worst_breach), measures the ceilings again and keeps
/// the highest of each: a shared machine may have given the probes less than the model. What stands above a roof after
/// `most_measurements` is a warning of the result. Returns whether `result` changed.
bool mend_low_ceilings(const CeilingSource& source, const CeilingRequest& request, const std::filesystem::path& file,
                       Result& result);

/// Where ceilings are remembered below a cache directory.
std::filesystem::path ceiling_file(const std::filesystem::path& cache_directory);

}  // namespace kbench
