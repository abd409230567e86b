// Turns failed CUPTI calls into DeviceError.
#include "profile/cupti/cupti_check.h"

#include <cupti.h>
#include <fmt/format.h>

#include <atomic>
#include <string>

#include "kbench/error.h"

namespace kbench::cuda {
namespace {

// CUPTI 12.6 has no names for these, which a newer one beside an older header may return.
enum : int { mig_not_supported = 43, sli_not_supported = 44, wsl_not_supported = 45 };

/// CUPTI was called since the last detach_cupti(): a machine without it has nothing to end.
std::atomic<bool> is_attached = false;
std::atomic<bool> was_ended = false;  ///< by detach_cupti(), and nothing was recorded since

}  // namespace

std::string_view profiling_obstacle(CUptiResult status) {
    switch (static_cast<int>(status)) {
        case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
            return "no permission to read the GPU's counters (ERR_NVGPUCTRPERM); fix: run as root or with CAP_SYS_ADMIN, or load the driver with the module option NVreg_RestrictProfilingToAdminUsers=0";
        case CUPTI_ERROR_HARDWARE_BUSY:
        case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
        case CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED:
            return "another profiler holds the GPU's counters (ncu, nsys, DCGM or another kbench): stop it and run again";
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
            return "a virtual GPU without counters: its host would have to enable profiling for this virtual machine";
        case mig_not_supported: return "a MIG instance without counters: profile on the whole GPU";
        case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
            return "confidential computing is on, which hides the GPU's counters";
        case wsl_not_supported: return "the Windows Subsystem for Linux has no counters here: run on Linux itself";
        case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
        case sli_not_supported: return "CUPTI has no counters for this kind of GPU";
        case CUPTI_ERROR_NOT_COMPATIBLE:
            return "the driver does not suit this CUPTI: update the driver to the CUDA toolkit's version";
        default: return {};
    }
}

void check(CUptiResult status, const char* call, const char* file, int line) {
    is_attached = true;
    if (status == CUPTI_SUCCESS) return;
    if (const std::string_view obstacle = profiling_obstacle(status); !obstacle.empty())
        throw DeviceError(std::string(obstacle));
    const char *name = nullptr, *message = nullptr;
    cuptiGetResultString(status, &name);
    cuptiGetErrorMessage(status, &message);
    const std::string_view path = file;
    throw DeviceError(fmt::format("{} failed at {}:{}: {} ({})", call, path.substr(path.find_last_of('/') + 1), line,
                                  name != nullptr ? name : fmt::to_string(static_cast<int>(status)),
                                  message != nullptr ? message : "CUPTI says no more"));
}

void detach_cupti() {
    if (is_attached.exchange(false) && cuptiFinalize() == CUPTI_SUCCESS) was_ended = true;
}

bool needs_restart() { return was_ended; }
void restarted() { was_ended = false; }

}  // namespace kbench::cuda
