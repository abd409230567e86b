// NVIDIA's management library, loaded when the program runs: kbench builds and starts without a driver. Only the few
// functions used are declared, after the NVML API reference; what a driver lacks is unavailable with its reason.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/profile/machine_state.h"

namespace kbench {

/// NVML's C functions, under their names without the prefix "nvml". A null one is missing in this driver.
struct NvmlApi {
    using Device = struct nvmlDevice_st*;
    using Return = int;  ///< 0 is success

    /// nvmlFieldValue_t.
    struct FieldValue {
        unsigned field_id, scope_id;
        long long timestamp_us, latency_us;
        int value_type;
        Return status;
        union {
            double floating;
            unsigned natural;
            unsigned long long natural_64;
        } value;
    };

    Return (*Init_v2)() = nullptr;
    Return (*Shutdown)() = nullptr;
    const char* (*ErrorString)(Return) = nullptr;
    Return (*SystemGetDriverVersion)(char* version, unsigned length) = nullptr;
    Return (*DeviceGetHandleByUUID)(const char* uuid, Device*) = nullptr;
    Return (*DeviceGetHandleByPciBusId_v2)(const char* pci_bus_id, Device*) = nullptr;
    Return (*DeviceGetClockInfo)(Device, int clock, unsigned* mhz) = nullptr;
    Return (*DeviceGetMaxClockInfo)(Device, int clock, unsigned* mhz) = nullptr;
    Return (*DeviceGetPowerUsage)(Device, unsigned* mw) = nullptr;
    Return (*DeviceGetEnforcedPowerLimit)(Device, unsigned* mw) = nullptr;
    Return (*DeviceGetFieldValues)(Device, int count, FieldValue*) = nullptr;
    Return (*DeviceGetTotalEnergyConsumption)(Device, unsigned long long* mj) = nullptr;
    Return (*DeviceGetTemperature)(Device, int sensor, unsigned* celsius) = nullptr;
    Return (*DeviceGetCurrentClocksEventReasons)(Device, unsigned long long* mask) = nullptr;
};

/// One GPU as NVML sees it.
class Nvml final : public MachineState {
  public:
    /// `device` is a UUID ("GPU-…", "MIG-…") or a PCI bus id ("0000:1b:00.0"), never an ordinal: CUDA's order of
    /// devices is not NVML's. Loads the driver's library. Never throws: see unavailable().
    explicit Nvml(const std::string& device, const char* library = "libnvidia-ml.so.1");
    /// With functions from elsewhere.
    Nvml(const std::string& device, const NvmlApi& api);
    ~Nvml() override;
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    /// Empty when the device can be read, else why not.
    const std::string& unavailable() const { return unavailable_; }

    MachineReading read() override;
    std::uint64_t throttle_mask() override;
    std::string throttle_unavailable() const override;
    void describe(GpuInfo& gpu) const override;
    /// As seen on an H200 with driver 580: 50 ms at 84 W gave 0 J or 8.4 J.
    std::chrono::milliseconds energy_resolution() const override { return std::chrono::milliseconds(100); }

    std::string driver_version() const;  ///< empty when unavailable
    Quantity max_sm_clock_mhz() const, max_memory_clock_mhz() const, power_limit_w() const;

  private:
    void open(const std::string& device);
    std::string error_text(NvmlApi::Return status) const;
    Quantity power_w() const;
    /// Calls one getter: its value times `scale`, or unavailable with the function's name and NVML's text.
    template <class Value>
    Quantity get(const char* name, NvmlApi::Return (*function)(NvmlApi::Device, Value*), double scale) const;
    /// The same for a getter that is told which of several values is wanted.
    Quantity get(const char* name, NvmlApi::Return (*function)(NvmlApi::Device, int, unsigned*), int which) const;
    Quantity quantity(const char* name, NvmlApi::Return status, double value) const;

    struct LibraryCloser {
        void operator()(void* library) const;
    };
    std::unique_ptr<void, LibraryCloser> library_;
    NvmlApi api_;
    bool initialised_ = false;
    NvmlApi::Device device_ = nullptr;
    std::string unavailable_, throttle_unavailable_;
};

}  // namespace kbench
