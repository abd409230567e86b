// Units of an SM that compute no FLOPs: the special function unit, and the load-store unit without memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/probe/span.h"

namespace kbench::cuda::probe {

inline constexpr int unit_threads = 256;
/// Steps of every chain per iteration.
inline constexpr int unit_steps = 32;

/// Every thread steps `chains` (2, 4 or 8) chains x = 2^-x in parallel, on the special function unit alone. (Two
/// reciprocals in a row would be optimised away by ptxas.) They converge to power_at_rest. x starts as
/// |operand(t, 0, chain)| with t the thread's index in the grid (values.h). out [blocks * unit_threads]: the sum of the
/// thread's chains, first to last. `span` may be null.
void power_chains(int chains, int blocks, int iterations, float* out, Span* span, cudaStream_t stream);

inline constexpr double power_at_rest = 0.6411857445;

/// Every thread repeatedly takes `chains` (2, 4 or 8) words from another lane by shuffles, which the load-store unit
/// does, without shared memory. Word k of thread t of the grid starts as scramble(t) + k; step s exchanges lanes whose
/// numbers differ by shuffle_mask(s).
/// out [blocks * unit_threads]: the sum of the thread's words, modulo 2^32. `span` may be null.
void shuffle_chains(int chains, int blocks, int iterations, std::uint32_t* out, Span* span, cudaStream_t stream);
constexpr int shuffle_mask(int step) { return 1 << step % 5; }

/// Warp instructions per iteration.
constexpr double unit_instructions(int chains, int blocks) {
    return 1.0 * chains * unit_steps * blocks * (unit_threads / 32);
}

}  // namespace kbench::cuda::probe
