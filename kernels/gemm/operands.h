// Device-side helpers for choosing GEMM algorithms: random operands, and the comparison of two outputs.
// Internal to kernels/gemm/.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/precision.h"

namespace kbench::cuda {

/// Fills `count` elements with normal numbers of the given standard deviation; element i depends on (seed, i) only.
void fill_normal(DataType type, void* data, std::int64_t count, double deviation, std::uint64_t seed,
                 cudaStream_t stream);

/// Writes to *largest (on the device) the largest |a - b| of two [rows, columns] matrices with leading dimension `ld`;
/// infinity where either holds a number that is not finite.
void largest_difference(DataType type, const void* a, const void* b, std::int64_t rows, std::int64_t columns,
                        std::int64_t ld, double* largest, cudaStream_t stream);

}  // namespace kbench::cuda
