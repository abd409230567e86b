// Asks the driver for a stream's green context. Its two calls came with CUDA 12.4 and are found at run time.
#include "kernels/multiprocessors.h"

#include "kernels/driver.h"

namespace kbench::cuda {
namespace {

using ContextOf = CUresult (*)(CUstream, CUgreenCtx*);
using ResourceOf = decltype(&cuGreenCtxGetDevResource);

/// The driver's function, or null.
template <class Function>
Function function_or_null(const char* name) {
    try {
        return driver_function<Function>(name, 12040);
    } catch (const DeviceError&) {
        return nullptr;
    }
}

int multiprocessors_of_device() {
    int device = 0, count = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return count;
}

}  // namespace

int multiprocessors_of(cudaStream_t stream) {
    static const auto context_of = function_or_null<ContextOf>("cuStreamGetGreenCtx");
    static const auto resource_of = function_or_null<ResourceOf>("cuGreenCtxGetDevResource");
    if (stream == nullptr || !context_of || !resource_of) return multiprocessors_of_device();
    CUgreenCtx context = nullptr;
    check_driver(context_of(stream, &context), "cuStreamGetGreenCtx");
    if (context == nullptr) return multiprocessors_of_device();
    CUdevResource resource{};
    check_driver(resource_of(context, &resource, CU_DEV_RESOURCE_TYPE_SM), "cuGreenCtxGetDevResource");
    return static_cast<int>(resource.sm.smCount);
}

}  // namespace kbench::cuda
