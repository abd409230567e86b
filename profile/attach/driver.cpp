// Entry points of libcuda by name: nothing here is linked to it.
#include "profile/attach/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "kbench/error.h"

namespace kbench::attach {
namespace {

template <class Function>
void find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) throw DeviceError(fmt::format("the driver has no {}", name));
}

Driver open() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) throw DeviceError("no NVIDIA driver: libcuda.so.1 cannot be opened");
    Driver found;
    find(library, "cuCtxSynchronize", found.synchronize);
    find(library, "cuCtxGetCurrent", found.current);
    find(library, "cuCtxGetDevice", found.device);
    find(library, "cuStreamIsCapturing", found.is_capturing);
    find(library, "cuEventCreate", found.create_event);
    find(library, "cuEventRecord", found.record_event);
    find(library, "cuEventElapsedTime", found.elapsed);
    return found;
}

}  // namespace

const Driver& driver() {
    static const Driver one = open();
    return one;
}

void check_driver(CUresult status, const char* call) {
    if (status != CUDA_SUCCESS)
        throw DeviceError(fmt::format("{} failed with driver error {}", call, static_cast<int>(status)));
}

}  // namespace kbench::attach
