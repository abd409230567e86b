// The causal mask and the row-wise softmax on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64);
// shapes as in models/ops/; nothing allocates.
#pragma once

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/scale_mask.h"
#include "models/ops/softmax.h"

namespace kbench::cpu {

/// Works in place, as ScaleMask in models/ops/; scores have `type`.
void scale_mask(DataType type, const ScaleMask& op, void* scores);
void softmax(DataType scores_type, DataType probabilities_type, const Softmax& op, In<"scores"> scores,
             Out<"probabilities"> probabilities);

}  // namespace kbench::cpu
