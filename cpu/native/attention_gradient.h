// Backward of fused causal attention on the CPU, for every stored type, without a library. Arithmetic is fp32 (fp64 for
// fp64); shapes as in models/ops/; nothing allocates.
#pragma once

#include <cstddef>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/attention.h"

namespace kbench::cpu {

/// qkv, out, dout and dqkv have `type`, lse at least fp32. Results do not depend on the number of threads.
/// `workspace` has attention_gradient_workspace bytes, which are enough for as many threads as there may be now.
std::size_t attention_gradient_workspace(DataType type, const Attention& op);
void attention_gradient(DataType type, const Attention& op, In<"qkv"> qkv, In<"out"> out, In<"dout"> dout,
                        In<"lse"> lse, Out<"dqkv"> dqkv, void* workspace);

}  // namespace kbench::cpu
