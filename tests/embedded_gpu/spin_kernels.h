// Kernels of known length: they watch the GPU's clock.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace kbench::spinning {

/// One thread waits for `us` microseconds of the GPU's nanosecond timer and adds what it counted to *spun_ns.
void spin(double us, std::uint64_t* spun_ns, cudaStream_t stream);

}  // namespace kbench::spinning
