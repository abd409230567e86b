// A matrix product as every GEMM provider of this folder takes it.
#pragma once

#include <cstdint>

#include "kbench/precision.h"

namespace kbench::cuda {

/// out[m, ldout] = epilogue(x · w), all row-major. x is [m, k], or [k, m] when `x_transposed`; w is [k, n], or [n, k]
/// when `weight_transposed`.
/// `n` is what is computed (padded if the caller padded w and out); leading dimensions are in elements.
/// `batch` > 1: strided batches (strides in elements), no epilogue.
/// out_type differs from the storage type of `precision` only for upcast scores (fp32 out of fp16 or bf16 operands).
struct GemmProblem {
    Precision precision;
    std::int64_t m, n, k;
    bool x_transposed = false, weight_transposed = false;
    bool bias = false, gelu = false;
    DataType out_type;
    std::int64_t ld_x, ld_w, ld_out;
    std::int64_t batch = 1, stride_x = 0, stride_w = 0, stride_out = 0;
    bool operator==(const GemmProblem&) const = default;
};

struct GemmPointers {
    const void* x;
    const void* w;
    const void* bias;  ///< [n], null without bias
    void* out;
};

}  // namespace kbench::cuda
