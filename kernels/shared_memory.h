// Dynamic shared memory beyond the 48 KiB that every kernel may have: how much there is, and leave for a kernel to take
// it.
#pragma once

#include <cuda_runtime.h>

namespace kbench::cuda {

/// What a block may have, its static shared memory included, on a GPU of 8.6, 8.9 or 12.0: less than on an A100 (163
/// KiB) or H100 (227 KiB). Kernels that need no more run on all.
inline constexpr int least_shared_bytes = 99 * 1024;

/// What a block may have on the current device; without one an A100's.
int shared_bytes_of_block();

/// Lets `kernel` have so much on the current device. Throws Unsupported where that has less.
void allow_shared_memory(const void* kernel, int bytes);
template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), int bytes) {
    allow_shared_memory(reinterpret_cast<const void*>(kernel), bytes);
}

/// From now on devices have at most so much for a block: an H100 shows what a smaller GPU would do. For tests.
void limit_shared_memory(int bytes);

}  // namespace kbench::cuda
