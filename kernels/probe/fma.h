// Chains of fused multiply-adds in registers, on the plain cores (not the tensor cores).
#pragma once

#include <cuda_runtime.h>

#include "kbench/precision.h"
#include "kernels/probe/span.h"

namespace kbench::cuda::probe {

inline constexpr int fma_threads = 256;
/// Steps of every chain per iteration.
inline constexpr int fma_steps = 32;

/// Every thread steps `chains` (4, 8 or 16) chains x = m x + c in parallel. m is slightly more than -1, so that x
/// alternates and neither grows nor vanishes. `type` is fp16 (packed pairs), fp32 or fp64.
/// With t the thread's index in the grid, i the half of a pair (else 0) and operand() as in values.h:
/// x starts as operand(t, i, chain), c = operand(t, 2, 0), m = -1 + (1 + t % 2) fma_decay(type).
/// out [blocks * fma_threads], in `type` (pairs for fp16): the sum of the thread's chains, first to last. `span` may be
/// null.
void fma_chains(DataType type, int chains, int blocks, int iterations, void* out, Span* span, cudaStream_t stream);
/// So small that x still moves after the 200 000 steps that a launch may have; in fp16 the smallest step from 1.
constexpr double fma_decay(DataType type) { return type == DataType::fp16 ? 0x1p-11 : 0x1p-17; }

/// FLOPs per iteration.
constexpr double fma_flops(DataType type, int chains, int blocks) {
    return (type == DataType::fp16 ? 4.0 : 2.0) * chains * blocks * fma_threads * fma_steps;
}
/// Bytes of one thread's result.
constexpr int fma_result_bytes(DataType type) { return type == DataType::fp64 ? 8 : 4; }

}  // namespace kbench::cuda::probe
