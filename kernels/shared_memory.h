// Dynamic shared memory beyond the 48 KiB that every kernel may have: how much there is, and permission for a kernel to
// use it.
#pragma once

#include <cuda_runtime.h>

namespace kbench::cuda {

/// What a block may have, including static shared memory, on compute capability 8.6, 8.9 and 12.0. It is less than an
/// A100's 163 KiB or an H100's 227 KiB; kernels that need no more run on all.
inline constexpr int least_shared_bytes = 99 * 1024;

/// What a block may have on the current device, or on the one that is assumed (compute_capability.h); without a device,
/// what an A100 has.
int shared_bytes_of_block();

/// What all blocks of an SM have together there, in bytes; the current device must be there.
int shared_bytes_of_multiprocessor();

/// Permits `kernel` to use that much on the current device. Throws Unsupported where the device has less.
void allow_shared_memory(const void* kernel, int bytes);
template <class... Parameters>
void allow_shared_memory(void (*kernel)(Parameters...), int bytes) {
    allow_shared_memory(reinterpret_cast<const void*>(kernel), bytes);
}

/// For tests: from now on devices have at most this much per block, so that an H100 behaves like a smaller GPU.
void limit_shared_memory(int bytes);

}  // namespace kbench::cuda
