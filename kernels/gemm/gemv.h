// Products of few rows, such as a decode step's: each needs a weight once, so that DRAM is what can bound them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>
#include <string>

#include "kbench/activation.h"
#include "kbench/operand.h"
#include "kbench/precision.h"

namespace kbench::cuda {

inline constexpr std::int64_t gemv_most_rows = 16;

/// out [m, n] = f(x w^T + bias) + residual with x [m, k] and w [n, k], row-major and dense but for out and residual,
/// whose rows lie `ld_out` elements apart. Sums are fp32 (fp64 for fp64), made in one order.
struct GemvProblem {
    Precision precision;
    std::int64_t m, n, k, ld_out;
    std::optional<Activation> activation = std::nullopt;
};

/// Why the kernels do not compute it, in a few words: more rows than gemv_most_rows, or rows that are no whole number
/// of 16-byte vectors. Empty where they do.
std::string gemv_unsupported(const GemvProblem& problem);

/// The kernel that computes it, such as "gemv<bf16, 8 rows>".
std::string gemv_kernel_name(const GemvProblem& problem);

/// Enqueues it. `bias` and `residual` may be null; `residual` may be `out`. The weight and the bias must not be written
/// by work that `stream` has still to do: the kernel asks for them while the one before it runs.
void gemv(const GemvProblem& problem, In<"x"> x, In<"w"> w, In<"bias?"> bias, In<"residual?"> residual, Out<"out"> out,
          cudaStream_t stream);

}  // namespace kbench::cuda
