// fp16 to fp32 and back a chunk at a time, in the CPU's own conversion instructions where it has them: written as
// arithmetic on bits they cost an RMS norm more than its memory does (6 GB/s a core where fp32 reaches 25). Internal to
// cpu/native/.
#pragma once

#include <cstdint>

#include "cpu/vector.h"

namespace kbench::cpu {

/// Exact; `to` may be anywhere.
void halves_to_floats(const Float16* from, float* to, std::int64_t count);
/// Rounds to nearest, ties to even.
void floats_to_halves(const float* from, Float16* to, std::int64_t count);

}  // namespace kbench::cpu
