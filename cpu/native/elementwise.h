// A bias's gradient and residual addition on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64); shapes
// as in models/ops/; nothing allocates.
#pragma once

#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/bias.h"

namespace kbench::cpu {

/// db[c] = sum of dy[r, c], in ascending r whatever the number of threads; added to db where `op` accumulates.
void bias_gradient(DataType type, const BiasAdd& op, In<"dy"> dy, Out<"db"> db);
void residual_add(DataType type, std::int64_t count, const void* x, const void* residual, void* out);

}  // namespace kbench::cpu
