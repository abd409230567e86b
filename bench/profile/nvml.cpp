// Constants are those of NVML's header, which its ABI keeps fixed.
#include "bench/profile/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace kbench {
namespace {

constexpr int clock_sm = 1, clock_memory = 2;  // nvmlClockType_t
constexpr int sensor_gpu = 0;                  // nvmlTemperatureSensors_t
constexpr unsigned field_power_instant = 186;  // NVML_FI_DEV_POWER_INSTANT

template <class Function>
void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
}

NvmlApi load(void* library) {
    NvmlApi api;
    find(library, "nvmlInit_v2", api.Init_v2);
    find(library, "nvmlShutdown", api.Shutdown);
    find(library, "nvmlErrorString", api.ErrorString);
    find(library, "nvmlSystemGetDriverVersion", api.SystemGetDriverVersion);
    find(library, "nvmlDeviceGetHandleByUUID", api.DeviceGetHandleByUUID);
    find(library, "nvmlDeviceGetHandleByPciBusId_v2", api.DeviceGetHandleByPciBusId_v2);
    find(library, "nvmlDeviceGetClockInfo", api.DeviceGetClockInfo);
    find(library, "nvmlDeviceGetMaxClockInfo", api.DeviceGetMaxClockInfo);
    find(library, "nvmlDeviceGetPowerUsage", api.DeviceGetPowerUsage);
    find(library, "nvmlDeviceGetEnforcedPowerLimit", api.DeviceGetEnforcedPowerLimit);
    find(library, "nvmlDeviceGetFieldValues", api.DeviceGetFieldValues);
    find(library, "nvmlDeviceGetTotalEnergyConsumption", api.DeviceGetTotalEnergyConsumption);
    find(library, "nvmlDeviceGetTemperature", api.DeviceGetTemperature);
    find(library, "nvmlDeviceGetCurrentClocksEventReasons", api.DeviceGetCurrentClocksEventReasons);
    if (api.DeviceGetCurrentClocksEventReasons == nullptr)  // its name before driver 535
        find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", api.DeviceGetCurrentClocksEventReasons);
    return api;
}

}  // namespace

void Nvml::LibraryCloser::operator()(void* library) const { dlclose(library); }

Nvml::Nvml(const std::string& device, const char* library) : library_(dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) {
        unavailable_ = fmt::format("NVML cannot be loaded: {}", dlerror());
        return;
    }
    api_ = load(library_.get());
    open(device);
}

Nvml::Nvml(const std::string& device, const NvmlApi& api) : api_(api) { open(device); }

Nvml::~Nvml() {
    if (initialised_ && api_.Shutdown != nullptr) api_.Shutdown();
}

void Nvml::open(const std::string& device) {
    if (api_.Init_v2 == nullptr) {
        unavailable_ = "NVML has no nvmlInit_v2";
        return;
    }
    if (const auto status = api_.Init_v2(); status != 0) {
        unavailable_ = "nvmlInit_v2: " + error_text(status);
        return;
    }
    initialised_ = true;
    const bool by_uuid = device.starts_with("GPU-") || device.starts_with("MIG-");
    const char* name = by_uuid ? "nvmlDeviceGetHandleByUUID" : "nvmlDeviceGetHandleByPciBusId_v2";
    const auto get_handle = by_uuid ? api_.DeviceGetHandleByUUID : api_.DeviceGetHandleByPciBusId_v2;
    if (get_handle == nullptr) {
        unavailable_ = fmt::format("NVML has no {}", name);
    } else if (const auto status = get_handle(device.c_str(), &device_); status != 0) {
        unavailable_ = fmt::format("{}({}): {}", name, device, error_text(status));
    } else {
        throttle_unavailable_ =
            get("nvmlDeviceGetCurrentClocksEventReasons", api_.DeviceGetCurrentClocksEventReasons, 1.0).reason;
    }
}

std::string Nvml::error_text(NvmlApi::Return status) const {
    return api_.ErrorString != nullptr ? api_.ErrorString(status) : fmt::format("NVML error {}", status);
}

Quantity Nvml::quantity(const char* name, NvmlApi::Return status, double value) const {
    if (status == 0) return Quantity::measured(value);
    return Quantity::unavailable(fmt::format("{}: {}", name, error_text(status)));
}

template <class Value>
Quantity Nvml::get(const char* name, NvmlApi::Return (*function)(NvmlApi::Device, Value*), double scale) const {
    if (!unavailable_.empty()) return Quantity::unavailable(unavailable_);
    if (function == nullptr) return Quantity::unavailable(fmt::format("NVML has no {}", name));
    Value value{};
    const NvmlApi::Return status = function(device_, &value);
    return quantity(name, status, static_cast<double>(value) * scale);
}

Quantity Nvml::get(const char* name, NvmlApi::Return (*function)(NvmlApi::Device, int, unsigned*), int which) const {
    if (!unavailable_.empty()) return Quantity::unavailable(unavailable_);
    if (function == nullptr) return Quantity::unavailable(fmt::format("NVML has no {}", name));
    unsigned value = 0;
    const NvmlApi::Return status = function(device_, which, &value);
    return quantity(name, status, value);
}

/// nvmlDeviceGetPowerUsage gives the mean of the last second on Ampere and later, longer than many of our samplings;
/// the field is the power at this moment, where the driver has it. Without the field a reading in the first second of a
/// window is of the same work only where the warm-up took a second, too.
Quantity Nvml::power_w() const {
    if (unavailable_.empty() && api_.DeviceGetFieldValues != nullptr) {
        NvmlApi::FieldValue field{};
        field.field_id = field_power_instant;
        if (api_.DeviceGetFieldValues(device_, 1, &field) == 0 && field.status == 0)
            return Quantity::measured(field.value.natural * 1e-3);
    }
    return get("nvmlDeviceGetPowerUsage", api_.DeviceGetPowerUsage, 1e-3);
}

MachineReading Nvml::read() {
    MachineReading reading;
    reading.energy_j = get("nvmlDeviceGetTotalEnergyConsumption", api_.DeviceGetTotalEnergyConsumption, 1e-3);
    reading.sm_clock_mhz = get("nvmlDeviceGetClockInfo", api_.DeviceGetClockInfo, clock_sm);
    reading.memory_clock_mhz = get("nvmlDeviceGetClockInfo", api_.DeviceGetClockInfo, clock_memory);
    reading.power_w = power_w();
    reading.temperature_c = get("nvmlDeviceGetTemperature", api_.DeviceGetTemperature, sensor_gpu);
    reading.throttle_mask = throttle_mask();
    return reading;
}

std::uint64_t Nvml::throttle_mask() {
    unsigned long long mask = 0;
    if (!throttle_unavailable().empty() || api_.DeviceGetCurrentClocksEventReasons(device_, &mask) != 0) return 0;
    return mask;
}

std::string Nvml::throttle_unavailable() const { return unavailable_.empty() ? throttle_unavailable_ : unavailable_; }

void Nvml::describe(GpuInfo& gpu) const {
    gpu.driver = driver_version();
    gpu.max_sm_clock_mhz = max_sm_clock_mhz();
    gpu.max_memory_clock_mhz = max_memory_clock_mhz();
    gpu.power_limit_w = power_limit_w();
}

std::string Nvml::driver_version() const {
    char version[80] = {};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
    if (!initialised_ || api_.SystemGetDriverVersion == nullptr ||
        api_.SystemGetDriverVersion(version, sizeof version) != 0)
        return {};
    return version;
}

Quantity Nvml::max_sm_clock_mhz() const {
    return get("nvmlDeviceGetMaxClockInfo", api_.DeviceGetMaxClockInfo, clock_sm);
}

Quantity Nvml::max_memory_clock_mhz() const {
    return get("nvmlDeviceGetMaxClockInfo", api_.DeviceGetMaxClockInfo, clock_memory);
}

Quantity Nvml::power_limit_w() const {
    return get("nvmlDeviceGetEnforcedPowerLimit", api_.DeviceGetEnforcedPowerLimit, 1e-3);
}

}  // namespace kbench
