// Which kernels a piece of work launches, read from a capture of it: what was timed is told from what is counted.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

namespace kbench::cuda {

/// A kernel launch as a graph keeps it: equal for the same function in the same shape.
struct Launch {
    const void* function;  ///< CUfunction or CUkernel
    std::array<unsigned, 3> grid, block;
    unsigned dynamic_shared_bytes;
    bool operator==(const Launch&) const = default;
};

/// What `enqueue` would put on a stream.
struct CapturedWork {
    std::size_t nodes = 0;         ///< kernels, copies, fills and all else
    std::vector<Launch> launches;  ///< the kernels
    bool operator==(const CapturedWork&) const = default;
};

/// Found by capturing `enqueue`; nothing runs.
CapturedWork captured_work(cudaStream_t stream, const std::function<void()>& enqueue);

}  // namespace kbench::cuda
