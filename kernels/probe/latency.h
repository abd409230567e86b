// Kernels of no work, and barriers of a whole grid.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace kbench::cuda::probe {

/// One block of one warp that does nothing.
void empty(cudaStream_t stream);

/// What the blocks of a grid barrier share, on the device; all zero before a launch.
struct BarrierState {
    std::uint32_t arrivals = 0;
    /// Times that a block came out of a barrier before another had come in; only counted when it is checked.
    std::uint32_t violations = 0;
};

/// `barriers` barriers in a row among `blocks` blocks of a cooperative launch, at most one for each SM: one atomic
/// counter that every block adds to and then watches. Resets `state` first. With `rounds` [blocks], all zero, every
/// block checks at every barrier that the next one has arrived; null leaves the check out. Throws DeviceError where
/// the device cannot launch cooperatively.
void grid_barriers(int blocks, int barriers, BarrierState* state, std::uint32_t* rounds, cudaStream_t stream);

}  // namespace kbench::cuda::probe
