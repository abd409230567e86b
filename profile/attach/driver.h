// The few driver calls of an injected process: its own driver's, which has loaded this library.
#pragma once

#include <cuda.h>

namespace kbench::attach {

struct Driver {
    CUresult(CUDAAPI* synchronize)() = nullptr;
    CUresult(CUDAAPI* current)(CUcontext*) = nullptr;
    CUresult(CUDAAPI* device)(CUdevice*) = nullptr;
    CUresult(CUDAAPI* is_capturing)(CUstream, CUstreamCaptureStatus*) = nullptr;
    CUresult(CUDAAPI* create_event)(CUevent*, unsigned) = nullptr;
    CUresult(CUDAAPI* record_event)(CUevent, CUstream) = nullptr;
    CUresult(CUDAAPI* elapsed)(float* ms, CUevent, CUevent) = nullptr;
};
/// Throws DeviceError without a driver.
const Driver& driver();

/// Throws DeviceError unless `status` is CUDA_SUCCESS.
void check_driver(CUresult status, const char* call);

}  // namespace kbench::attach
