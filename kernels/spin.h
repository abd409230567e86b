// A kernel of known length that touches no memory. It measures what launching and recording a kernel costs.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace kbench::cuda {

/// Loads the kernel as its first launch would; the error says why the current device cannot run this build's code.
cudaError_t load_spin();

/// Enqueues one block per SM that waits until `cycles` of the SM's clock have passed.
void spin(std::int64_t cycles, int multiprocessors, cudaStream_t stream);

}  // namespace kbench::cuda
