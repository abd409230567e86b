// Launcher of the embedding kernel. Device pointers; matrices row-major and dense; elements of the model's
// storage_type, arithmetic in fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kbench/precision.h"

namespace kbench::cuda {

/// out[r, :] = wte[tokens[r], :] + wpe[r % seq, :]; out [rows, width].
void embedding_forward(DataType type, const std::int32_t* tokens, const void* wte, const void* wpe, void* out,
                       std::int64_t rows, std::int64_t seq, std::int64_t width, cudaStream_t stream);

}  // namespace kbench::cuda
