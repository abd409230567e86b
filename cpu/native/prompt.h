// What a prompt's step does beside a forward, on the CPU, for every stored type; shapes and layouts as in models/ops/.
#pragma once

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/fill_cache.h"
#include "models/ops/last_token.h"

namespace kbench::cpu {

void fill_cache(DataType type, const FillCache& op, In<"qkv"> qkv, Out<"key_cache"> key_cache,
                Out<"value_cache"> value_cache);
void last_token(DataType type, const LastToken& op, In<"x"> x, Out<"out"> out);

}  // namespace kbench::cpu
