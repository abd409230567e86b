// AdamW on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64); nothing allocates.
#pragma once

#include <span>

#include "kbench/precision.h"
#include "models/ops/adamw.h"

namespace kbench::cpu {

/// `operands` are in the order in which the op lists them.
void adamw(DataType type, const AdamW& op, std::span<void* const> operands);

}  // namespace kbench::cpu
