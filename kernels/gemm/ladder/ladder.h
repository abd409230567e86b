// kbench's own GEMM, five times: each rung changes one thing compared with the rung before (docs/kernels/gemm.md).
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "kernels/gemm/problem.h"

namespace kbench::cuda {

enum class GemmRung { naive, tiled, registers, async, mma };

/// Names by rung; the provider is "native_" + name.
inline constexpr std::array<std::string_view, 5> gemm_rungs{"naive", "tiled", "register", "async", "mma"};

/// The fastest rung in `precision`: mma, but async for fp32, whose products run on plain cores.
constexpr GemmRung top_rung(Precision precision) {
    return precision == Precision::fp32 ? GemmRung::async : GemmRung::mma;
}

/// Returns "" when `rung` computes products in `precision`, else why not.
std::string gemm_rung_unsupported(GemmRung rung, Precision precision);

/// How many tiles `rung` was built for in `precision`; 0 when it has no such products.
std::size_t gemm_rung_configurations(GemmRung rung, Precision precision);

/// Shared memory per block of a configuration; it cannot be launched on a device with less.
int gemm_rung_smem_bytes(GemmRung rung, Precision precision, std::size_t configuration);

/// Lets the table's rule choose the tile from the problem's shape and the device.
inline constexpr std::size_t chosen_configuration = static_cast<std::size_t>(-1);

/// out = x · w on `stream`; no bias, GELU, batch or upcast. Sums are fp32, fp64 in fp64. Pointers and leading
/// dimensions may have any alignment. An operand whose rows do not start at multiples of 16 bytes is moved element by
/// element. Throws Unsupported for what the rung does not compute, UsageError for shapes that describe no
/// product.
void gemm(GemmRung rung, const GemmProblem& problem, const GemmPointers& pointers, cudaStream_t stream,
          std::size_t configuration = chosen_configuration);

/// The kernel that gemm would launch on the current device, such as "gemm_mma<fp16,128x256x64,3 stages>".
std::string gemm_kernel_name(GemmRung rung, const GemmProblem& problem,
                             std::size_t configuration = chosen_configuration);

}  // namespace kbench::cuda
