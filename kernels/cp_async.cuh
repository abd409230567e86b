// Copies from global to shared memory that overlap the arithmetic (cp.async, sm_80 and newer).
#pragma once

#include <cuda_runtime.h>

namespace kbench::cuda {

/// Starts to copy 16 bytes; both addresses are multiples of 16. The first `bytes` come from `global`, the rest are
/// zero. With 0 bytes `global` is not read.
__device__ inline void cp_async_16(void* smem, const void* global, int bytes) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(smem));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global), "r"(bytes));
}

/// Starts to copy all of 4, 8 or 16 bytes (both addresses multiples of that), or zeros where not `inside`, without
/// reading `global`. This takes fewer instructions than a count of bytes. 16 bytes bypass L1.
template <int bytes>
__device__ void cp_async_if(void* smem, const void* global, bool inside) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16);
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(smem));
    if constexpr (bytes == 16)
        asm volatile(
            "{\n.reg .pred outside;\nsetp.eq.u32 outside, %2, 0;\n"
            "cp.async.cg.shared.global [%0], [%1], 16, outside;\n}" ::"r"(address),
            "l"(global), "r"(static_cast<unsigned>(inside)));
    else
        asm volatile(
            "{\n.reg .pred outside;\nsetp.eq.u32 outside, %2, 0;\n"
            "cp.async.ca.shared.global [%0], [%1], %3, outside;\n}" ::"r"(address),
            "l"(global), "r"(static_cast<unsigned>(inside)), "n"(bytes));
}

/// Starts to copy 16 bytes.
__device__ inline void cp_async_16(void* smem, const void* global) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(smem));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global));
}

/// Closes this thread's group of copies, which may be empty.
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most the `pending` newest of this thread's groups are still in flight.
template <int pending>
__device__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Waits for all of this thread's copies, in groups or not.
__device__ inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace kbench::cuda
