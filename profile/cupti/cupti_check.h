// The one helper for CUPTI calls: every call goes through it, failures become DeviceError with CUPTI's text or, where
// the cause is known, with what would help.
#pragma once

#include <cupti_result.h>

#include <string_view>

namespace kbench::cuda {

/// Why CUPTI refuses to profile here and what would help, for the refusals that have a cause outside kbench (no
/// permission, another profiler, a virtual GPU, ...); empty for all others.
std::string_view profiling_obstacle(CUptiResult status);

/// Unless `status` is CUPTI_SUCCESS throws DeviceError: the obstacle, or `call`, `file`:`line` and CUPTI's text.
void check(CUptiResult status, const char* call, const char* file, int line);

/// Ends whatever CUPTI does in this process. Nothing may record, count or sample meanwhile, in any thread. With CUPTI
/// there, a graph of empty kernels takes up to 1.4 times as long: docs/method.md, "End to end".
void detach_cupti();
/// Whether detach_cupti() ended it, and nothing was recorded since. Recording begins anew by itself; the profiler's
/// calls then say that CUPTI is not initialised.
bool needs_restart();
/// Called by what records.
void restarted();

}  // namespace kbench::cuda

#define KBENCH_CUPTI(call) ::kbench::cuda::check((call), #call, __FILE__, __LINE__)
