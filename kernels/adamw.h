// Launcher of AdamW. Device pointers; elements have the model's storage_type, arithmetic is fp32 (fp64 for fp64).
// Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <span>

#include "kbench/precision.h"
#include "models/ops/adamw.h"

namespace kbench::cuda {

/// `operands` are in the order in which the op lists them.
void adamw(DataType type, const AdamW& op, std::span<void* const> operands, cudaStream_t stream);

}  // namespace kbench::cuda
