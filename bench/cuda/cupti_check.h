// The one helper for CUPTI calls: every call goes through it, failures become DeviceError with CUPTI's text.
#pragma once

#include <cupti_result.h>

namespace kbench::cuda {

/// Throws DeviceError naming `call`, `file`:`line` and CUPTI's text unless `status` is CUPTI_SUCCESS.
void check(CUptiResult status, const char* call, const char* file, int line);

}  // namespace kbench::cuda

#define KBENCH_CUPTI(call) ::kbench::cuda::check((call), #call, __FILE__, __LINE__)
