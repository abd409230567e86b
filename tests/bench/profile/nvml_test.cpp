// NVML with functions of our own: which device is asked for, units, and what a driver may lack.
#include "bench/profile/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace kbench {
namespace {

using testing::HasSubstr;

int shutdowns = 0;
std::string asked_uuid, asked_pci;

NvmlApi healthy_api() {
    shutdowns = 0;
    asked_uuid.clear();
    asked_pci.clear();
    NvmlApi api;
    api.Init_v2 = [] { return 0; };
    api.Shutdown = [] { return ++shutdowns, 0; };
    api.ErrorString = [](int) { return "Not Supported"; };
    api.SystemGetDriverVersion = [](char* version, unsigned length) {
        std::strncpy(version, "580.65.06", length);
        return 0;
    };
    api.DeviceGetHandleByUUID = [](const char* uuid, NvmlApi::Device*) { return asked_uuid = uuid, 0; };
    api.DeviceGetHandleByPciBusId_v2 = [](const char* id, NvmlApi::Device*) { return asked_pci = id, 0; };
    api.DeviceGetClockInfo = [](NvmlApi::Device, int clock, unsigned* mhz) {
        return *mhz = clock == 1 ? 1980 : clock == 2 ? 3201 : 0, 0;
    };
    api.DeviceGetMaxClockInfo = [](NvmlApi::Device, int clock, unsigned* mhz) {
        return *mhz = clock == 1 ? 1981 : clock == 2 ? 3202 : 0, 0;
    };
    api.DeviceGetPowerUsage = [](NvmlApi::Device, unsigned* mw) { return *mw = 650'000, 0; };
    api.DeviceGetEnforcedPowerLimit = [](NvmlApi::Device, unsigned* mw) { return *mw = 700'000, 0; };
    api.DeviceGetFieldValues = [](NvmlApi::Device, int count, NvmlApi::FieldValue* field) {
        field->status = count == 1 && field->field_id == 186 ? 0 : 1;
        field->value.natural = 691'500;
        return 0;
    };
    api.DeviceGetTotalEnergyConsumption = [](NvmlApi::Device, unsigned long long* mj) {
        return *mj = 5'000'000'000'123ull, 0;
    };
    api.DeviceGetTemperature = [](NvmlApi::Device, int, unsigned* celsius) { return *celsius = 61, 0; };
    api.DeviceGetCurrentClocksEventReasons = [](NvmlApi::Device, unsigned long long* mask) { return *mask = 0x4, 0; };
    return api;
}

TEST(Nvml, ReadsInTheUnitsOfTheFields) {
    Nvml nvml("GPU-1", healthy_api());
    EXPECT_EQ(nvml.unavailable(), "");
    const MachineReading reading = nvml.read();
    EXPECT_EQ(reading.sm_clock_mhz.value, 1980);
    EXPECT_EQ(reading.memory_clock_mhz.value, 3201);
    EXPECT_DOUBLE_EQ(reading.power_w.value.value(), 691.5);
    EXPECT_DOUBLE_EQ(reading.energy_j.value.value(), 5'000'000'000.123);
    EXPECT_EQ(reading.temperature_c.value, 61);
    EXPECT_EQ(reading.throttle_mask, 0x4u);
    EXPECT_EQ(nvml.max_sm_clock_mhz().value, 1981);
    EXPECT_EQ(nvml.max_memory_clock_mhz().value, 3202);
    EXPECT_EQ(nvml.power_limit_w().value, 700);
    EXPECT_EQ(nvml.driver_version(), "580.65.06");
}

TEST(Nvml, AsksForTheDeviceByUuidOrBus) {
    const Nvml by_uuid("GPU-e0b8", healthy_api());
    EXPECT_EQ(asked_uuid, "GPU-e0b8");
    EXPECT_EQ(asked_pci, "");
    const Nvml by_bus("0000:1b:00.0", healthy_api());
    EXPECT_EQ(asked_pci, "0000:1b:00.0");
    EXPECT_EQ(asked_uuid, "");
}

TEST(Nvml, AveragePowerServesWhereTheMomentaryIsMissing) {
    NvmlApi api = healthy_api();
    api.DeviceGetFieldValues = [](NvmlApi::Device, int, NvmlApi::FieldValue* field) { return field->status = 3, 0; };
    EXPECT_EQ(Nvml("GPU-1", api).read().power_w.value, 650);
    api.DeviceGetFieldValues = nullptr;
    EXPECT_EQ(Nvml("GPU-1", api).read().power_w.value, 650);
}

TEST(Nvml, WhatADriverLacksIsUnavailableWithItsReason) {
    NvmlApi api = healthy_api();
    api.DeviceGetTotalEnergyConsumption = [](NvmlApi::Device, unsigned long long*) { return 3; };
    api.DeviceGetTemperature = nullptr;
    api.DeviceGetCurrentClocksEventReasons = nullptr;
    Nvml nvml("GPU-1", api);
    const MachineReading reading = nvml.read();
    EXPECT_EQ(reading.energy_j.reason, "nvmlDeviceGetTotalEnergyConsumption: Not Supported");
    EXPECT_THAT(reading.temperature_c.reason, HasSubstr("nvmlDeviceGetTemperature"));
    EXPECT_EQ(reading.sm_clock_mhz.value, 1980);
    EXPECT_EQ(nvml.throttle_mask(), 0u);
    EXPECT_THAT(nvml.throttle_unavailable(), HasSubstr("ClocksEventReasons"));
    EXPECT_EQ(Nvml("GPU-1", healthy_api()).throttle_unavailable(), "");
}

TEST(Nvml, WithoutADeviceEverythingHasTheReason) {
    NvmlApi api = healthy_api();
    api.DeviceGetHandleByUUID = [](const char*, NvmlApi::Device*) { return 6; };
    api.ErrorString = [](int) { return "Not Found"; };
    Nvml nvml("GPU-2", api);
    EXPECT_EQ(nvml.unavailable(), "nvmlDeviceGetHandleByUUID(GPU-2): Not Found");
    EXPECT_EQ(nvml.read().power_w.reason, nvml.unavailable());
    EXPECT_EQ(nvml.read().energy_j.reason, nvml.unavailable());
    EXPECT_EQ(nvml.power_limit_w().reason, nvml.unavailable());
    EXPECT_EQ(nvml.throttle_mask(), 0u);
    EXPECT_EQ(nvml.throttle_unavailable(), nvml.unavailable());
}

TEST(Nvml, ShutsDownWhatItInitialisedAndNothingElse) {
    { const Nvml nvml("GPU-1", healthy_api()); }
    EXPECT_EQ(shutdowns, 1);
    NvmlApi api = healthy_api();
    api.Init_v2 = [] { return 9; };
    {
        const Nvml nvml("GPU-1", api);
        EXPECT_THAT(nvml.unavailable(), HasSubstr("nvmlInit_v2"));
    }
    EXPECT_EQ(shutdowns, 0);
}

TEST(Nvml, AMissingLibraryIsAReasonAndNotAFailure) {
    Nvml nvml("GPU-1", "libno-such-library.so.1");
    EXPECT_THAT(nvml.unavailable(), HasSubstr("libno-such-library.so.1"));
    EXPECT_THAT(nvml.read().sm_clock_mhz.reason, HasSubstr("libno-such-library.so.1"));
    EXPECT_EQ(nvml.driver_version(), "");
}

}  // namespace
}  // namespace kbench
