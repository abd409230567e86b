// The CUDA driver as far as the libraries for other programs need it, loaded when the program runs: who links one
// starts on a machine without a GPU, too.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>

namespace kbench {

/// The driver's functions in the versions whose signatures these are.
struct Driver {
    CUresult (*get_error_name)(CUresult error, const char** name);
    CUresult (*context_get_current)(CUcontext* context);
    CUresult (*context_push)(CUcontext context);
    CUresult (*context_pop)(CUcontext* context);
    CUresult (*context_get_device)(CUdevice* device);
    CUresult (*context_synchronize)();
    CUresult (*device_get_name)(char* name, int size, CUdevice device);
    CUresult (*stream_get_context)(CUstream stream, CUcontext* context);
    CUresult (*stream_get_capture)(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id);
    CUresult (*exchange_capture_mode)(CUstreamCaptureMode* mode);
    CUresult (*event_create)(CUevent* event, unsigned flags);
    CUresult (*event_record)(CUevent event, CUstream stream, unsigned flags);
    CUresult (*event_query)(CUevent event);
    CUresult (*event_synchronize)(CUevent event);
    CUresult (*event_elapsed)(float* ms, CUevent start, CUevent end);

    /// Throws std::runtime_error with `call` and the error's name, unless `result` is a success.
    void check(CUresult result, const char* call) const;
};

/// Nothing where the machine has no driver. Throws std::runtime_error where it lacks a function.
std::unique_ptr<Driver> load_driver();
/// Loaded once in a process. Throws std::runtime_error also where the machine has no driver.
const Driver& driver();

/// Makes a context current while it lives. Other streams may be captured meanwhile, which refuses a thread most calls
/// unless it says that they are none of the capture's business.
class InContext {
  public:
    InContext(const Driver& driver, CUcontext context);
    ~InContext();
    InContext(const InContext&) = delete;
    InContext& operator=(const InContext&) = delete;

  private:
    const Driver& driver_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace kbench
