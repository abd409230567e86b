// While it lives, the device has as little shared memory for a block as GPUs of 8.6, 8.9 and 12.0.
#pragma once

#include <limits>

#include "kernels/shared_memory.h"

namespace kbench::test {

struct LessSharedMemory {
    LessSharedMemory() { cuda::limit_shared_memory(cuda::least_shared_bytes); }
    ~LessSharedMemory() { cuda::limit_shared_memory(std::numeric_limits<int>::max()); }
    LessSharedMemory(const LessSharedMemory&) = delete;
    LessSharedMemory& operator=(const LessSharedMemory&) = delete;
};

}  // namespace kbench::test
