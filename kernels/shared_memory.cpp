// Asks the runtime for each device's shared memory, so that no driver call is needed.
#include "kernels/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "analysis/machine/occupancy.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/compute_capability.h"

namespace kbench::cuda {
namespace {

int limit = std::numeric_limits<int>::max();

/// The device's `attribute`, or what the capability that is assumed has less.
int at_most(cudaDeviceAttr attribute, std::int64_t DeviceLimits::*bytes) {
    int device = 0, found = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&found, attribute, device));
    const ComputeCapability own = own_capability(device), taken = assumed_capability(own);
    if (taken == own) return found;
    return static_cast<int>(std::min<std::int64_t>(found, device_limits(taken.major, taken.minor).value().*bytes));
}

}  // namespace

void limit_shared_memory(int bytes) { limit = bytes; }

int shared_bytes_of_block() {
    int device = 0, bytes = 163 * 1024;
    if (cudaGetDevice(&device) != cudaSuccess)
        cudaGetLastError();  // clears the error
    else
        bytes = at_most(cudaDevAttrMaxSharedMemoryPerBlockOptin, &DeviceLimits::max_shared_bytes_per_block);
    return std::min(bytes, limit);
}

int shared_bytes_of_multiprocessor() {
    return at_most(cudaDevAttrMaxSharedMemoryPerMultiprocessor, &DeviceLimits::shared_bytes_per_sm);
}

void allow_shared_memory(const void* kernel, int bytes) {
    if (const int most = shared_bytes_of_block(); bytes > most)
        throw Unsupported(
            fmt::format("its kernel needs {} bytes of shared memory for a block, this GPU has {}", bytes, most));
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace kbench::cuda
