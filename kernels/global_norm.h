// Launcher of the norm of all gradients. Device pointers; elements of the model's storage_type. Nothing allocates or
// waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "kbench/precision.h"
#include "models/ops/global_norm.h"

namespace kbench::cuda {

/// norm (fp32, or fp64 of fp64) of `gradients`, as many as `op` has sizes; the same bits in every run. Squares in fp32
/// (fp64 for fp64): of 2^64 and more they are infinite, below 2^-63 they are lost. Sums of a thread's chunk in fp32,
/// others in fp64. `workspace` of global_norm_workspace bytes.
std::size_t global_norm_workspace(const GlobalNorm& op);
void global_norm(DataType type, const GlobalNorm& op, std::span<void* const> gradients, void* norm, void* workspace,
                 cudaStream_t stream);

}  // namespace kbench::cuda
