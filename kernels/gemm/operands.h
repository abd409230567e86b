// Device-side data for choosing GEMM algorithms: random operands, and the comparison of two outputs.
// Internal to kernels/gemm/.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/precision.h"

namespace kbench::cuda {

/// Fills `count` elements with normal numbers of the given standard deviation; element i depends on (seed, i) only.
void fill_normal(DataType type, void* data, std::int64_t count, double deviation, std::uint64_t seed,
                 cudaStream_t stream);

/// *largest = the largest |a - b| over [rows, columns] elements of matrices with leading dimension `ld`, infinity where
/// either is not finite. `largest` is on the device.
void largest_difference(DataType type, const void* a, const void* b, std::int64_t rows, std::int64_t columns,
                        std::int64_t ld, double* largest, cudaStream_t stream);

}  // namespace kbench::cuda
