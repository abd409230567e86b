// The state of the machine that a measurement depends on (clocks, power, temperature, throttling), behind one interface
// so that GPU and CPU report alike and the sampler can be tested with a machine that misbehaves.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/profile/cpu_counts.h"
#include "kbench/records.h"

namespace kbench {

/// What a throttle reason does to a sample that was taken under it.
enum class ThrottleEffect {
    none,      ///< says nothing about speed
    reported,  ///< the sample is kept and the reason reported: this is how the machine runs this work
    discards,  ///< the sample is discarded and repeated: the machine was in a passing state
};

/// One bit of a throttle mask; the bits and names are NVML's (nvml.h, nvmlClocksEventReason*), used for CPUs as well.
struct ThrottleReason {
    std::uint64_t bit;
    std::string_view name;
    ThrottleEffect effect;
};

/// Heat and the power supply's brake are faults of the moment. A power cap is not: large GEMMs run into it for as long
/// as they last, on every run, and without those samples there would be none; the clocks that it allows are reported.
inline constexpr ThrottleReason throttle_reasons[] = {
    {0x001, "gpu_idle", ThrottleEffect::none},
    {0x002, "applications_clocks_setting", ThrottleEffect::reported},
    {0x004, "sw_power_cap", ThrottleEffect::reported},
    {0x008, "hw_slowdown", ThrottleEffect::discards},
    {0x010, "sync_boost", ThrottleEffect::reported},
    {0x020, "sw_thermal_slowdown", ThrottleEffect::discards},
    {0x040, "hw_thermal_slowdown", ThrottleEffect::discards},
    {0x080, "hw_power_brake", ThrottleEffect::discards},
    {0x100, "display_clock", ThrottleEffect::reported},
};

/// Whether a sample taken under these reasons must be repeated.
constexpr bool discards_sample(std::uint64_t mask) {
    for (const ThrottleReason& reason : throttle_reasons)
        if ((mask & reason.bit) != 0 && reason.effect == ThrottleEffect::discards) return true;
    return false;
}

/// Names of the reasons in a mask, but for those without effect; a bit that has no name is given in hexadecimal.
std::vector<std::string> throttle_names(std::uint64_t mask);

/// One reading; each field is measured or unavailable with its reason.
struct MachineReading {
    Quantity sm_clock_mhz, memory_clock_mhz, power_w, temperature_c;
    Quantity energy_j;  ///< a counter with an arbitrary start that never falls
    std::uint64_t throttle_mask = 0;
};

/// All readings may be called from two threads at once.
class MachineState {
  public:
    virtual ~MachineState() = default;
    virtual MachineReading read() = 0;
    /// The reasons in force now; 0 also where the machine does not tell.
    virtual std::uint64_t throttle_mask() = 0;
    /// Empty where throttling can be seen, else why not.
    virtual std::string throttle_unavailable() const = 0;
    /// What the kernel has counted of this process, where its threads do the work; nothing where a device does.
    virtual std::optional<CpuCounts> cpu_counts() { return std::nullopt; }
    /// Adds what the driver tells of a GPU beyond the CUDA runtime: its own version, the highest clocks, the power
    /// limit.
    virtual void describe(GpuInfo&) const {}
    /// How often reading is cheap enough not to disturb what is measured.
    virtual std::chrono::milliseconds period() const { return std::chrono::milliseconds(20); }
    /// How often the energy counter moves. RAPL's does every millisecond (Intel SDM volume 3B, 15.10).
    virtual std::chrono::milliseconds energy_resolution() const { return std::chrono::milliseconds(1); }
};

}  // namespace kbench
