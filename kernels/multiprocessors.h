// How many SMs work on a stream may take: those of the device, or of the part of it that the stream belongs to.
#pragma once

#include <cuda_runtime.h>

namespace kbench::cuda {

/// Of the current device or, where `stream` is a green context's, of that. A driver that knows no green contexts has
/// none. Throws DeviceError.
int multiprocessors_of(cudaStream_t stream);

}  // namespace kbench::cuda
