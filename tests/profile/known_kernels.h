// Kernels of known nature that no probe is: FMAs by blocks of which an SM holds one, chains of dependent loads, and
// units kept busy by little else.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace kbench::cuda::known {

inline constexpr int fma_block_threads = 1024;

/// `blocks` blocks that each fill an SM's schedulers with FFMA in registers; a second one does not fit on the SM.
/// out [blocks * fma_block_threads] floats.
void fma_blocks(int blocks, int iterations, float* out, cudaStream_t stream);
constexpr double fma_block_flops(int blocks, int iterations) {
    return 2.0 * 4 * 32 * fma_block_threads * blocks * iterations;  // 4 chains, 32 steps
}

inline constexpr int unit_threads = 256;
/// `blocks` blocks whose warps do nothing but take 2 to the power of something, in the special-function unit.
/// out [blocks * unit_threads] floats.
void special_functions(int blocks, int iterations, float* out, cudaStream_t stream);
/// `blocks` blocks whose threads read shared memory `ways` words apart: of 32 banks a warp meets 32 / ways, so that an
/// access takes `ways` passes. out [blocks * unit_threads].
void bank_conflicts(int ways, int blocks, int iterations, std::uint32_t* out, cudaStream_t stream);

/// Nodes of a chain stand this many bytes apart, each on a DRAM access of its own.
inline constexpr int chase_stride_bytes = 64;
/// One cycle through all `nodes` (a power of two) in no order that a cache could use.
void make_chase(std::uint32_t* chain, std::uint32_t nodes, cudaStream_t stream);
/// As many warps as the device holds, in each of which one thread follows the chain for `loads` loads; each waits for
/// the one before it. out [chase_warps()].
void chase(const std::uint32_t* chain, std::uint32_t nodes, int loads, std::uint32_t* out, cudaStream_t stream);
int chase_warps();

}  // namespace kbench::cuda::known
