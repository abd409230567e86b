// Units of an SM that compute no FLOPs: special functions, and the load-store unit without memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/probe/span.h"

namespace kbench::cuda::probe {

inline constexpr int unit_threads = 256;
/// Steps of every chain in an iteration.
inline constexpr int unit_steps = 32;

/// Every thread steps `chains` (2, 4 or 8) chains x = 2^-x side by side, by the special-function unit alone. (ptxas
/// makes nothing of two reciprocals in a row.) They come to rest at power_at_rest. x = |operand(t, 0, chain)| at first,
/// t the thread's index in the grid (values.h). out [blocks * unit_threads]: the sum of the thread's chains, first to
/// last. `span` may be null.
void power_chains(int chains, int blocks, int iterations, float* out, Span* span, cudaStream_t stream);

inline constexpr double power_at_rest = 0.6411857445;

/// Every thread takes `chains` (2, 4 or 8) words from another lane, over and over: by shuffles, which the load-store
/// unit does, without shared memory. Word k of thread t of the grid is scramble(t) + k at first; step s exchanges lanes
/// whose numbers differ by shuffle_mask(s).
/// out [blocks * unit_threads]: the sum of the thread's words, modulo 2^32. `span` may be null.
void shuffle_chains(int chains, int blocks, int iterations, std::uint32_t* out, Span* span, cudaStream_t stream);
constexpr int shuffle_mask(int step) { return 1 << step % 5; }

/// Instructions of a warp in an iteration.
constexpr double unit_instructions(int chains, int blocks) {
    return 1.0 * chains * unit_steps * blocks * (unit_threads / 32);
}

}  // namespace kbench::cuda::probe
