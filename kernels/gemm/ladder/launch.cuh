// What the rungs' launchers share: operands taken from a problem, and a launch of one block per tile.
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/check.h"
#include "kernels/gemm/ladder/index.h"
#include "kernels/gemm/ladder/kernel.h"
#include "kernels/types.cuh"

namespace kbench::cuda::ladder {

template <class T>
Operands<T> operands_of(const GemmProblem& problem, const GemmPointers& pointers) {
    const auto whole_vectors = [](const void* pointer, std::int64_t ld) {
        return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && ld % vector_width<T> == 0;
    };
    return {static_cast<const T*>(pointers.x),
            static_cast<const T*>(pointers.w),
            static_cast<T*>(pointers.out),
            problem.ld_x,
            problem.ld_w,
            problem.ld_out,
            static_cast<int>(problem.m),
            static_cast<int>(problem.n),
            static_cast<int>(problem.k),
            problem.weight_transposed,
            whole_vectors(pointers.x, problem.ld_x),
            whole_vectors(pointers.w, problem.ld_w),
            whole_vectors(pointers.out, problem.ld_out)};
}

/// The tile of this block. Kernels of the ladder have one-dimensional grids.
template <int rows, int columns, int strip, class T>
__device__ TilePosition tile_of_this_block(const Operands<T>& p) {
    return tile_of_block(blockIdx.x, (p.m + rows - 1) / rows, (p.n + columns - 1) / columns, strip);
}

/// Launches `kernel`, which takes Operands<T>, with one block of `threads` threads per tile.
template <auto kernel, class T>
void launch_tiles(const Tile& tile, int threads, int smem_bytes, const GemmProblem& problem,
                  const GemmPointers& pointers, cudaStream_t stream) {
    static std::atomic<std::uint64_t> prepared_devices = 0;  // one bit per device; setting it twice does no harm
    int device = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    const std::uint64_t bit = std::uint64_t{1} << device;
    if (smem_bytes > 0 && !(prepared_devices.load() & bit)) {
        KBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem_bytes));
        prepared_devices |= bit;
    }
    const std::int64_t blocks = divide_up(problem.m, tile.rows) * divide_up(problem.n, tile.columns);
    kernel<<<static_cast<unsigned>(blocks), threads, smem_bytes, stream>>>(operands_of<T>(problem, pointers));
    KBENCH_CUDA_LAUNCHED("gemm");
}

/// `Rows<T>::kernels()` for the type in which plain cores compute `precision`; none for tf32.
template <template <class> class Rows>
Kernels plain_core_kernels(Precision precision) {
    switch (precision) {
        case Precision::fp16: return Rows<__half>::kernels();
        case Precision::bf16: return Rows<__nv_bfloat16>::kernels();
        case Precision::fp32: return Rows<float>::kernels();
        case Precision::fp64: return Rows<double>::kernels();
        case Precision::tf32: break;
    }
    return {};
}

}  // namespace kbench::cuda::ladder
