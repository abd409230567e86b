// How many SMs the work on a stream may use: those of the device, or of the part of it that the stream belongs to.
#pragma once

#include <cuda_runtime.h>

namespace kbench::cuda {

/// The number for the current device or, where `stream` belongs to a green context, for that context. Drivers without
/// green contexts have none. Throws DeviceError.
int multiprocessors_of(cudaStream_t stream);

}  // namespace kbench::cuda
