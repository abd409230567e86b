// The few driver API calls that the runtime API lacks. They are found at run time, because the program must also start
// where there is no driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include "kbench/error.h"
#include "kernels/check.h"

namespace kbench::cuda {

/// The driver function called `name`, as that version of CUDA defines it (12040 is 12.4). Throws DeviceError when the
/// driver has none.
template <class Function>
Function driver_function(const char* name, unsigned version = 12000) {
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found{};
    KBENCH_CUDA(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess || address == nullptr)
        throw DeviceError(fmt::format("the driver has no {}: it is older than CUDA {}.{}", name, version / 1000,
                                      version % 1000 / 10));
    return reinterpret_cast<Function>(address);
}

inline void check_driver(CUresult status, const char* call) {
    if (status != CUDA_SUCCESS)
        throw DeviceError(fmt::format("{} failed with driver error {}", call, static_cast<int>(status)));
}

/// The current context of this thread.
inline CUcontext current_context() {
    static const auto get = driver_function<CUresult (*)(CUcontext*)>("cuCtxGetCurrent");
    CUcontext context = nullptr;
    check_driver(get(&context), "cuCtxGetCurrent");
    return context;
}

}  // namespace kbench::cuda
