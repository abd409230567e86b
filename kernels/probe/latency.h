// Kernels that do nothing, and barriers across a whole grid.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace kbench::cuda::probe {

/// One block of one warp that does nothing.
void empty(cudaStream_t stream);

/// State that the blocks of a grid barrier share, on the device; all zero before a launch.
struct BarrierState {
    std::uint32_t arrivals = 0;
    /// How often a block left a barrier before another had arrived; counted only when checked.
    std::uint32_t violations = 0;
};

/// Runs `barriers` barriers in a row among `blocks` blocks of a cooperative launch, at most one block per SM. A barrier
/// is one atomic counter that every block increments and then watches. Resets `state` first. With `rounds` [blocks],
/// all zero, every block checks at every barrier that the next block has arrived; null skips the check. Throws
/// DeviceError where the device cannot launch cooperatively.
void grid_barriers(int blocks, int barriers, BarrierState* state, std::uint32_t* rounds, cudaStream_t stream);

}  // namespace kbench::cuda::probe
