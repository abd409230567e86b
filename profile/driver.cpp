// Loads the CUDA driver's functions by name and version.
#include "profile/driver.h"

#include <dlfcn.h>

#include <stdexcept>

namespace kbench {
namespace {

using GetProcAddress = CUresult (*)(const char* name, void** function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status);

}  // namespace

void Driver::check(CUresult result, const char* call) const {
    if (result == CUDA_SUCCESS) return;
    const char* name = nullptr;
    if (get_error_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
    throw std::runtime_error(std::string(call) + ": " + name);
}

std::unique_ptr<Driver> load_driver() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
    if (get == nullptr) throw std::runtime_error("the CUDA driver is older than 12.0");
    auto driver = std::make_unique<Driver>();
    const auto load = [&](auto& function, const char* name, int version) {
        void* found = nullptr;
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
        if (get(name, &found, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status) != CUDA_SUCCESS || found == nullptr)
            throw std::runtime_error(std::string("the CUDA driver has no ") + name);
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    };
    constexpr int usual = 12000;
    load(driver->get_error_name, "cuGetErrorName", usual);
    load(driver->context_get_current, "cuCtxGetCurrent", usual);
    load(driver->context_push, "cuCtxPushCurrent", usual);
    load(driver->context_pop, "cuCtxPopCurrent", usual);
    load(driver->context_get_device, "cuCtxGetDevice", usual);
    load(driver->context_synchronize, "cuCtxSynchronize", usual);
    load(driver->device_get_name, "cuDeviceGetName", usual);
    load(driver->stream_get_context, "cuStreamGetCtx", usual);
    // Later versions also return the graph, which nobody here asks for.
    load(driver->stream_get_capture, "cuStreamGetCaptureInfo", 10010);
    load(driver->exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", usual);
    load(driver->event_create, "cuEventCreate", usual);
    load(driver->event_record, "cuEventRecordWithFlags", usual);
    load(driver->event_query, "cuEventQuery", usual);
    load(driver->event_synchronize, "cuEventSynchronize", usual);
    load(driver->event_elapsed, "cuEventElapsedTime", usual);
    return driver;
}

const Driver& driver() {
    // Never destroyed: handlers that were registered before the first call run after a destructor would.
    static const Driver* const one = load_driver().release();
    if (one == nullptr) throw std::runtime_error("no CUDA driver is loaded (libcuda.so.1)");
    return *one;
}

InContext::InContext(const Driver& driver, CUcontext context) : driver_(driver) {
    driver_.check(driver_.context_push(context), "cuCtxPushCurrent");
    driver_.exchange_capture_mode(&mode_);
}

InContext::~InContext() {
    driver_.exchange_capture_mode(&mode_);
    CUcontext popped;
    driver_.context_pop(&popped);
}

}  // namespace kbench
