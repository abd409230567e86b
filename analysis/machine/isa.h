// Which instructions a CPU implementation is made of, by the name that its library gives it.
#pragma once

#include <string_view>

#include "kbench/precision.h"

namespace kbench {

/// "AMX", "AVX512_FP16", "AVX512_BF16", "AVX-512", "AVX2" or "SSE4.1" for the names of oneDNN ("brg:avx512_core_amx"),
/// OpenBLAS ("OpenBLAS 0.3.21 SkylakeX") and our own products ("avx512_bf16 panels"); empty where the name does not
/// tell.
std::string_view instruction_set(std::string_view implementation);

/// The name of the ceiling (ceilings.h) that products of matrices in `precision` by these instructions run against, on
/// all cores; empty where none is measured, as for fp16 by AMX.
std::string_view isa_ceiling(std::string_view instruction_set, Precision precision);

}  // namespace kbench
