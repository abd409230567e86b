// Launcher of the norm of all gradients. Device pointers; elements have the model's storage_type. Nothing allocates or
// waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "kbench/precision.h"
#include "models/ops/global_norm.h"

namespace kbench::cuda {

/// norm (fp32; fp64 for fp64) of `gradients`, one per size of `op`, with the same bits in every run. Squares are fp32
/// (fp64 for fp64): elements from 2^64 on give infinity, those below 2^-63 are lost. A thread's chunk is summed in
/// fp32, all else in fp64. `workspace` has global_norm_workspace bytes.
std::size_t global_norm_workspace(DataType type, const GlobalNorm& op);
void global_norm(DataType type, const GlobalNorm& op, std::span<void* const> gradients, void* norm, void* workspace,
                 cudaStream_t stream);

}  // namespace kbench::cuda
