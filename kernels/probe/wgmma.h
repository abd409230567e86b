// Tensor cores through wgmma, which only compute capability 9.0 has: operands in shared memory, sums in registers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/precision.h"
#include "kernels/probe/span.h"

namespace kbench::cuda::probe {

/// Shape of one instruction, and of the operands in shared memory: 128 bytes of k per row.
inline constexpr int wgmma_m = 64, wgmma_n = 256;
constexpr int wgmma_depth(Precision precision) { return precision == Precision::tf32 ? 32 : 64; }

inline constexpr int wgmma_max_warpgroups = 3;

/// Products that an iteration adds.
inline constexpr int wgmma_turns = 2;

/// Matrix numbers for operand() (values.h): one A per warpgroup, one B per block.
constexpr std::uint32_t wgmma_matrix_a(int block, int warpgroup) {
    return static_cast<std::uint32_t>(block * (wgmma_max_warpgroups + 1) + warpgroup);
}
constexpr std::uint32_t wgmma_matrix_b(int block) { return wgmma_matrix_a(block, wgmma_max_warpgroups); }

/// Each of the `warpgroups` (1 to 3) of a block adds A B^T to its sums, wgmma_turns times per iteration; A is
/// [wgmma_m, depth], B [wgmma_n, depth]; `precision` is fp16, bf16 or tf32, sums are fp32.
/// out [blocks * warpgroups * 128]: the total of the thread's sums. With w the warp in its warpgroup, these lie in rows
/// 16 w + lane / 4 and that + 8, and in columns lane % 4 * 2 and the next of every 8. `span` may be null.
void wgmma_chains(Precision precision, int warpgroups, int blocks, int iterations, float* out, Span* span,
                  cudaStream_t stream);

/// FLOPs per iteration.
constexpr double wgmma_flops(Precision precision, int warpgroups, int blocks) {
    return 2.0 * wgmma_m * wgmma_n * wgmma_depth(precision) * warpgroups * blocks * wgmma_turns;
}

}  // namespace kbench::cuda::probe
