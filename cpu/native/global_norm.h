// The norm of all gradients on the CPU, for every stored type; nothing allocates.
#pragma once

#include <span>

#include "kbench/precision.h"
#include "models/ops/global_norm.h"

namespace kbench::cpu {

/// norm (fp32; fp64 for fp64) of `gradients`, one per size of `op`; it does not depend on the number of threads.
/// Squares are fp32 (fp64 for fp64): elements from 2^64 on give infinity, those below 2^-63 are lost. Sums are
/// fp64.
void global_norm(DataType type, const GlobalNorm& op, std::span<void* const> gradients, void* norm);

}  // namespace kbench::cpu
