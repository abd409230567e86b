// Tensor cores through mma.sync: operands and sums in registers, from compute capability 8.0 on.
#pragma once

#include <cuda_runtime.h>

#include "kernels/probe/span.h"

namespace kbench::cuda::probe {

/// The instructions, by input type and m, n, k. Sums are fp32; for fp64 fp64.
enum class Mma { fp16_16x8x16, bf16_16x8x16, tf32_16x8x8, fp64_8x8x4, fp64_16x8x16 };

struct MmaShape {
    const char* name;
    int m, n, k;
    int result_bytes;  ///< per thread
};
inline constexpr MmaShape mma_shapes[] = {{"m16n8k16", 16, 8, 16, 4},
                                          {"m16n8k16", 16, 8, 16, 4},
                                          {"m16n8k8", 16, 8, 8, 4},
                                          {"m8n8k4", 8, 8, 4, 8},
                                          {"m16n8k16", 16, 8, 16, 8}};
constexpr const MmaShape& shape_of(Mma mma) { return mma_shapes[static_cast<int>(mma)]; }

inline constexpr int mma_threads = 256;

/// Returns "" when this device can run `mma` as it was compiled, else why not.
const char* mma_unsupported(Mma mma);

/// Every warp w of the grid adds A B^T to its sums, mma_turns times per iteration, by `tiles` (4 or 8) instructions of
/// independent sums. A[row, k] = operand(2 w, row, k) is [m, k]; B[column, k] = operand(2 w + 1, column, k) is
/// [n tiles, k] (values.h). out [blocks * mma_threads], fp32 or fp64: the total of the thread's sums. These lie in rows
/// lane / 4 and, where m is 16, lane / 4 + 8, and in columns lane % 4 * 2 and the next of each tile.
/// `span` may be null.
void mma_chains(Mma mma, int tiles, int blocks, int iterations, void* out, Span* span, cudaStream_t stream);

/// Products that an iteration adds.
inline constexpr int mma_turns = 8;

/// FLOPs per iteration.
constexpr double mma_flops(Mma mma, int tiles, int blocks) {
    const MmaShape& shape = shape_of(mma);
    return 2.0 * shape.m * shape.n * shape.k * tiles * blocks * (mma_threads / 32) * mma_turns;
}

}  // namespace kbench::cuda::probe
