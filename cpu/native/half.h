// Passes over stored 16-bit elements that use the conversion instructions of AVX-512 and AVX512_BF16 where the CPU has
// both. Converting by arithmetic on bits, or through a buffer of floats, costs an RMS norm more time than its memory
// traffic does. Internal to cpu/native/.
#pragma once

#include <cstdint>

#include "cpu/vector.h"

namespace kbench::cpu {

/// Whether this CPU has AVX-512 and AVX512_BF16.
bool has_bf16_instructions();

/// The sum of x[c]^2 for c in [0, count), in fp32.
float sum_of_squares(std::int64_t count, const Float16* x);
/// The bf16 instructions treat subnormal elements as zero.
float sum_of_squares(std::int64_t count, const BFloat16* x);

/// out[c] = x[c] * factor * weight[c] in fp32, rounded to nearest, ties to even.
void scale(std::int64_t count, const Float16* x, float factor, const Float16* weight, Float16* out);
/// The bf16 instructions round subnormal results to zero.
void scale(std::int64_t count, const BFloat16* x, float factor, const BFloat16* weight, BFloat16* out);

}  // namespace kbench::cpu
