// Bias, GELU and residual addition on the CPU, for every stored type. Arithmetic in fp32 (fp64 for fp64); shapes as in
// models/ops/; nothing allocates.
#pragma once

#include <cstdint>

#include "kbench/precision.h"
#include "models/ops/bias.h"

namespace kbench::cpu {

/// out = x + bias, then GELU when `gelu`; bias may be null; in place allowed.
void bias_gelu(DataType type, std::int64_t rows, std::int64_t width, const void* x, const void* bias, bool gelu,
               void* out);
/// dx = dy times GELU's derivative at x; in place allowed.
void gelu_gradient(DataType type, std::int64_t count, const void* x, const void* dy, void* dx);
/// db[c] = sum of dy[r, c], r rising, whatever the number of threads; added to what is there where `op` accumulates.
void bias_gradient(DataType type, const BiasAdd& op, const void* dy, void* db);
void residual_add(DataType type, std::int64_t count, const void* x, const void* residual, void* out);

}  // namespace kbench::cpu
