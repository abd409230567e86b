// The state of the CPU from Linux's sysfs: frequency, RAPL energy, temperature, thermal throttling; and from /proc how
// much of it this process got.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "bench/profile/machine_state.h"

namespace kbench {

class CpuState final : public MachineState {
  public:
    /// Looks once for what there is to read below `sysfs`. Virtual machines usually have none of it.
    /// `root` stands in front of /proc and of control groups.
    explicit CpuState(const std::filesystem::path& sysfs = "/sys", const std::filesystem::path& root = "/");

    /// The clock is the mean over some of the CPUs; energy is the sum of the packages' RAPL counters; power is left to
    /// whoever divides energy by time; there is no memory clock.
    MachineReading read() override;
    /// hw_thermal_slowdown while a thermal throttle event of a package is recent: the kernel counts events, not their
    /// length.
    std::uint64_t throttle_mask() override;
    std::string throttle_unavailable() const override;
    std::optional<CpuCounts> cpu_counts() override { return counts_.read(); }
    /// Its files take some microseconds each of a core that the model is running on.
    std::chrono::milliseconds period() const override { return std::chrono::milliseconds(100); }

  private:
    struct EnergyCounter {
        std::filesystem::path file;
        double range_uj = 0, last_uj = 0, total_uj = 0;
    };

    void find_energy(const std::filesystem::path& sysfs);
    void find_temperature(const std::filesystem::path& sysfs);
    Quantity energy_j();

    CpuCountReader counts_;
    std::vector<std::filesystem::path> frequency_files_, throttle_files_;
    std::filesystem::path temperature_file_;
    std::vector<EnergyCounter> energy_counters_;
    std::string energy_unavailable_;
    double throttle_events_ = 0;
    std::chrono::steady_clock::time_point recent_until_{};
    std::mutex mutex_;  ///< guards the counters' last values
};

}  // namespace kbench
