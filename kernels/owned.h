// CUDA objects that free themselves, for code that measures on the device outside the plan's own stream.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "kernels/check.h"

namespace kbench::cuda {

template <class Handle, cudaError_t (*destroy)(Handle)>
struct Destroy {
    using pointer = Handle;
    void operator()(Handle handle) const { destroy(handle); }
};
using OwnedStream = std::unique_ptr<cudaStream_t, Destroy<cudaStream_t, cudaStreamDestroy>>;
using OwnedEvent = std::unique_ptr<cudaEvent_t, Destroy<cudaEvent_t, cudaEventDestroy>>;
using OwnedGraph = std::unique_ptr<cudaGraph_t, Destroy<cudaGraph_t, cudaGraphDestroy>>;
using OwnedGraphExec = std::unique_ptr<cudaGraphExec_t, Destroy<cudaGraphExec_t, cudaGraphExecDestroy>>;
struct FreeMemory {
    void operator()(void* memory) const { cudaFree(memory); }
};
using OwnedMemory = std::unique_ptr<void, FreeMemory>;

/// Device memory of that size; null for 0 bytes. Throws DeviceError.
inline OwnedMemory allocate(std::size_t bytes) {
    void* memory = nullptr;
    if (bytes) KBENCH_CUDA(cudaMalloc(&memory, bytes));
    return OwnedMemory(memory);
}

inline OwnedEvent make_event() {
    cudaEvent_t event;
    KBENCH_CUDA(cudaEventCreate(&event));
    return OwnedEvent(event);
}

/// Microseconds from `begin` to `end`; waits for `end`.
inline double us_between(const OwnedEvent& begin, const OwnedEvent& end) {
    float ms = 0;
    KBENCH_CUDA(cudaEventSynchronize(end.get()));
    KBENCH_CUDA(cudaEventElapsedTime(&ms, begin.get(), end.get()));
    return 1e3 * static_cast<double>(ms);
}

}  // namespace kbench::cuda
