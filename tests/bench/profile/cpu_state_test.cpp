// The CPU's state from a made-up sysfs.
#include "bench/profile/cpu_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

class CpuStateFiles : public testing::Test {
  protected:
    void write_energy(const std::string& zone, const std::string& name, const std::string& energy_uj) {
        sysfs_.write("class/powercap/" + zone + "/name", name + "\n");
        sysfs_.write("class/powercap/" + zone + "/max_energy_range_uj", "262143328850\n");
        sysfs_.write("class/powercap/" + zone + "/energy_uj", energy_uj + "\n");
    }
    void write_cpu(int cpu, const std::string& file, const std::string& value) {
        sysfs_.write("devices/system/cpu/cpu" + std::to_string(cpu) + "/" + file, value + "\n");
    }

    TemporaryDirectory sysfs_;
};

TEST_F(CpuStateFiles, ClockIsTheMeanOverTheCpus) {
    write_cpu(0, "cpufreq/scaling_cur_freq", "3000000");
    write_cpu(1, "cpufreq/scaling_cur_freq", "2000000");
    sysfs_.write("devices/system/cpu/cpufreq/scaling_cur_freq", "1\n");  // not a CPU
    EXPECT_DOUBLE_EQ(CpuState(sysfs_ / "").read().sm_clock_mhz.value.value(), 2500);
}

TEST_F(CpuStateFiles, EnergyIsTheSumOfThePackagesAcrossTheirWrap) {
    write_energy("intel-rapl:0", "package-0", "1000000");
    write_energy("intel-rapl:1", "package-1", "262143000000");
    write_energy("intel-rapl:2", "psys", "5");
    write_energy("intel-rapl:0:0", "dram", "5");
    CpuState state(sysfs_ / "");
    const double before = state.read().energy_j.value.value();
    write_energy("intel-rapl:0", "package-0", "4000000");  // 3 J
    write_energy("intel-rapl:1", "package-1", "671150");   // wrapped: 1 J
    write_energy("intel-rapl:2", "psys", "900000000");
    EXPECT_NEAR(state.read().energy_j.value.value() - before, 4, 1e-6);
}

TEST_F(CpuStateFiles, EnergyThatCannotBeReadNamesItsFile) {
    write_energy("intel-rapl:0", "package-0", "");
    EXPECT_THAT(CpuState(sysfs_ / "").read().energy_j.reason, HasSubstr("intel-rapl:0/energy_uj"));
}

TEST_F(CpuStateFiles, TemperatureIsThePackagesSensor) {
    sysfs_.write("class/hwmon/hwmon0/name", "nvme\n");
    sysfs_.write("class/hwmon/hwmon0/temp1_input", "30000\n");
    sysfs_.write("class/hwmon/hwmon1/name", "coretemp\n");
    sysfs_.write("class/hwmon/hwmon1/temp1_input", "71500\n");
    EXPECT_DOUBLE_EQ(CpuState(sysfs_ / "").read().temperature_c.value.value(), 71.5);
}

TEST_F(CpuStateFiles, AThrottleEventIsSeenForAWhile) {
    write_cpu(0, "thermal_throttle/package_throttle_count", "7");
    CpuState state(sysfs_ / "");
    EXPECT_EQ(state.throttle_unavailable(), "");
    EXPECT_EQ(state.throttle_mask(), 0u);  // events before the start do not count
    write_cpu(0, "thermal_throttle/package_throttle_count", "8");
    EXPECT_EQ(state.throttle_mask(), 0x40u);
    write_cpu(0, "thermal_throttle/package_throttle_count", "9");
    EXPECT_EQ(state.read().throttle_mask, 0x40u);
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    EXPECT_EQ(state.throttle_mask(), 0u);
}

TEST_F(CpuStateFiles, AVirtualMachineWithNothingSaysSoForEachFigure) {
    CpuState state(sysfs_ / "");
    const MachineReading reading = state.read();
    for (const Quantity& quantity :
         {reading.sm_clock_mhz, reading.memory_clock_mhz, reading.power_w, reading.temperature_c, reading.energy_j}) {
        EXPECT_EQ(quantity.origin, Origin::unavailable);
        EXPECT_NE(quantity.reason, "");
    }
    EXPECT_NE(state.throttle_unavailable(), "");
    EXPECT_EQ(state.throttle_mask(), 0u);
}

}  // namespace
}  // namespace kbench
