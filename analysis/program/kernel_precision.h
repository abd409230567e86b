// What a kernel computes in, and what else its name tells of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kbench/precision.h"

namespace kbench {

/// The precision of a kernel's arithmetic by its demangled name, as libraries name their kernels: "h16816gemm",
/// "sgemm", "f16f16_f16f32", "tf32", c10::BFloat16 or double among template arguments. Nothing where the name has none
/// of that. Only counters prove it.
std::optional<Precision> named_precision(std::string_view demangled);

/// A framework's type, such as "float16" or "torch.bfloat16"; nothing for another.
std::optional<Precision> framework_precision(std::string_view dtype);

/// Whether a fused attention kernel masks keys behind the query: flash_fwd_kernel and flash_bwd kernels say it in their
/// template arguments (Dao-AILab/flash-attention, flash_fwd_kernel.h). Nothing for kernels that do not.
std::optional<bool> named_causal(std::string_view demangled);

}  // namespace kbench
