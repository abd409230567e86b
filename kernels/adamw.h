// Launcher of AdamW. Device pointers; elements of the model's storage_type, arithmetic in fp32 (fp64 for fp64). Nothing
// allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <span>

#include "kbench/precision.h"
#include "models/ops/adamw.h"

namespace kbench::cuda {

/// `operands` as the op lists them.
void adamw(DataType type, const AdamW& op, std::span<void* const> operands, cudaStream_t stream);

}  // namespace kbench::cuda
