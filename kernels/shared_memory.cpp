// Asks the runtime for each device's shared memory, so that no driver call is needed.
#include "kernels/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kbench/error.h"
#include "kernels/check.h"

namespace kbench::cuda {
namespace {

int limit = std::numeric_limits<int>::max();

}  // namespace

void limit_shared_memory(int bytes) { limit = bytes; }

int shared_bytes_of_block() {
    int device = 0, bytes = 163 * 1024;
    if (cudaGetDevice(&device) != cudaSuccess)
        cudaGetLastError();  // clears the error
    else
        KBENCH_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return std::min(bytes, limit);
}

void allow_shared_memory(const void* kernel, int bytes) {
    if (const int most = shared_bytes_of_block(); bytes > most)
        throw Unsupported(
            fmt::format("its kernel needs {} bytes of shared memory for a block, this GPU has {}", bytes, most));
    KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace kbench::cuda
