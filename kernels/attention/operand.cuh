// Converts an element of 4 or 8 bytes to what a tensor core multiplies.
#pragma once

namespace kbench::cuda::attention {

/// Rounds to tf32: to nearest, ties away from zero (PTX has no other rounding for sm_80).
__device__ inline float operand(float value) {
    unsigned rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
    return __uint_as_float(rounded);
}
__device__ inline double operand(double value) { return value; }

}  // namespace kbench::cuda::attention
