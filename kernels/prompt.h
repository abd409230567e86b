// What a prompt's step does beside a forward. Device pointers; shapes and layouts as in models/ops/. Nothing allocates
// or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/fill_cache.h"
#include "models/ops/last_token.h"

namespace kbench::cuda {

void fill_cache(DataType type, const FillCache& op, In<"qkv"> qkv, Out<"key_cache"> key_cache,
                Out<"value_cache"> value_cache, cudaStream_t stream);
void last_token(DataType type, const LastToken& op, In<"x"> x, Out<"out"> out, cudaStream_t stream);

}  // namespace kbench::cuda
