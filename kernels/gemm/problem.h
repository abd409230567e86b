// A matrix product, as every GEMM provider of this folder takes it.
#pragma once

#include <cstdint>

#include "kbench/precision.h"

namespace kbench::cuda {

/// out[m, ldout] = epilogue(x · w), all row-major. x is [m, k], or [k, m] when `x_transposed`; w is [k, n], or [n, k]
/// when `weight_transposed`.
/// `n` is the computed width (padded if the caller padded w and out); leading dimensions are in elements.
/// `batch` > 1: strided batches (strides in elements), no epilogue.
/// Epilogues, in this order: + bias[n]; GELU's tanh form, which with `keeps_argument` also stores its argument; or the
/// product times GELU's slope at aux. `bias_gradient` also sums w's columns, where w is the dy of
/// a weight's gradient. out_type differs from the storage type of `precision` only for upcast scores (fp32 out of fp16
/// or bf16 operands).
struct GemmProblem {
    Precision precision;
    std::int64_t m, n, k;
    bool x_transposed = false, weight_transposed = false;
    bool bias = false, gelu = false, keeps_argument = false, gelu_gradient = false, bias_gradient = false;
    DataType out_type;
    std::int64_t ld_x, ld_w, ld_out;
    std::int64_t batch = 1, stride_x = 0, stride_w = 0, stride_out = 0;
    bool operator==(const GemmProblem&) const = default;

    bool has_aux() const { return keeps_argument || gelu_gradient; }
    bool has_epilogue() const { return bias || gelu || has_aux() || bias_gradient; }
};

struct GemmPointers {
    const void* x;
    const void* w;
    const void* bias;  ///< [n], null without bias
    void* out;
    void* aux = nullptr;            ///< shaped as out: GELU's argument, written or (gelu_gradient) read
    void* bias_gradient = nullptr;  ///< [n], written
};

}  // namespace kbench::cuda
