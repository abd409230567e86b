// The norm of all gradients on the CPU, for every stored type; nothing allocates.
#pragma once

#include <span>

#include "kbench/precision.h"
#include "models/ops/global_norm.h"

namespace kbench::cpu {

/// norm (fp32, or fp64 of fp64) of `gradients`, as many as `op` has sizes; the same bits whatever the number of
/// threads. Squares in fp32 (fp64 for fp64): of 2^64 and more they are infinite, below 2^-63 they are lost. Sums in
/// fp64.
void global_norm(DataType type, const GlobalNorm& op, std::span<void* const> gradients, void* norm);

}  // namespace kbench::cpu
