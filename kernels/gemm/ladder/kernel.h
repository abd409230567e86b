// The rows that each rung offers the dispatcher, one per tile that it was built for. Internal to kernels/gemm/ladder/.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/gemm/problem.h"

namespace kbench::cuda::ladder {

/// The operands of a product as kernels see them: x [m, k], out [m, n], w [k, n] or, transposed, [n, k]. Rows of each
/// lie `ld` elements apart.
template <class T>
struct Operands {
    const T *x, *w;
    T* out;
    std::int64_t ld_x, ld_w, ld_out;
    int m, n, k;
    bool w_transposed;
    bool vector_x, vector_w, vector_out;  ///< all rows start at multiples of 16 bytes

    /// Distance in elements from one row (k) of w to the next, and from one column (n) to the next.
    __device__ std::int64_t w_row() const { return w_transposed ? 1 : ld_w; }
    __device__ std::int64_t w_column() const { return w_transposed ? ld_w : 1; }
};

/// How a kernel cuts the problem: a block computes `rows` x `columns` of out, `depth` of k at a time.
struct Tile {
    int rows, columns, depth;
    int warp_rows, warp_columns;  ///< part of the tile that one warp computes; 0 where warps have no tile
    int stages;                   ///< buffers of the ring; 1: no ring, 0: no shared memory
    int strip;                    ///< tile rows in a strip of tile_of_block
    int blocks_per_sm;            ///< occupancy that the registers are limited for
    int speed_pct;  ///< relative to the table's fastest tile, in a short run at 8192^3 on an H200 (fp64: 4096^3)

    constexpr int warps() const { return rows / warp_rows * (columns / warp_columns); }
    constexpr int threads() const { return 32 * warps(); }
    constexpr int smem_bytes(int element_bytes) const { return stages * (rows + columns) * depth * element_bytes; }
};

struct Kernel {
    std::string_view family;
    Tile tile;
    int smem_bytes;
    void (*launch)(const GemmProblem&, const GemmPointers&, cudaStream_t);
};

/// The kernels of one rung in one precision, those for the largest problems first; empty when it has none.
using Kernels = std::span<const Kernel>;
Kernels naive_kernels(Precision precision);
Kernels tiled_kernels(Precision precision);
Kernels register_kernels(Precision precision);
Kernels async_kernels(Precision precision);
Kernels mma_fp16_kernels();
Kernels mma_bf16_kernels();
Kernels mma_tf32_kernels();
Kernels mma_fp64_kernels();

}  // namespace kbench::cuda::ladder
