// What the GEMM providers of this folder share: NVIDIA's names for our types, operands as column-major libraries see
// them, and checks of a problem. Internal to kernels/gemm/.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <library_types.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "kbench/precision.h"
#include "kernels/gemm/problem.h"

namespace kbench::cuda {

constexpr cudaDataType_t cuda_type(DataType type) {
    constexpr cudaDataType_t types[] = {CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_64F, CUDA_R_32I};
    return types[static_cast<int>(type)];
}

constexpr cublasComputeType_t compute_type(Precision precision) {
    constexpr cublasComputeType_t types[] = {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
                                             CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F};
    return types[static_cast<int>(precision)];
}

/// alpha or beta in the type that cuBLAS wants: that of the sums.
struct Scalar {
    double fp64;
    float fp32;
    explicit constexpr Scalar(double value) : fp64(value), fp32(static_cast<float>(value)) {}
    const void* as(Precision precision) const {
        return precision == Precision::fp64 ? static_cast<const void*>(&fp64) : &fp32;
    }
};

/// One operand as stored: `rows` rows of `columns` elements, `ld` apart. To a column-major library the row-major matrix
/// is its transpose: `columns` x `rows` with the same ld.
struct Stored {
    std::int64_t rows, columns, ld, stride;
    DataType type;
    /// Elements from the first to the last of all `batch` matrices, which may interleave.
    std::int64_t extent(std::int64_t batch) const { return (batch - 1) * stride + (rows - 1) * ld + columns; }
};

inline Stored stored_x(const GemmProblem& p) {
    const DataType type = storage_type(p.precision);
    return p.x_transposed ? Stored{p.k, p.m, p.ld_x, p.stride_x, type} : Stored{p.m, p.k, p.ld_x, p.stride_x, type};
}
inline Stored stored_w(const GemmProblem& p) {
    const DataType type = storage_type(p.precision);
    return p.weight_transposed ? Stored{p.n, p.k, p.ld_w, p.stride_w, type}
                               : Stored{p.k, p.n, p.ld_w, p.stride_w, type};
}
inline Stored stored_out(const GemmProblem& p) { return {p.m, p.n, p.ld_out, p.stride_out, p.out_type}; }

/// Throws UsageError for shapes that describe no product, Unsupported for what no provider of this folder computes.
void check_problem(const GemmProblem& problem);

/// The current device's handle, shared by all who hold it: creating one takes milliseconds and memory.
std::shared_ptr<cublasLtContext> shared_lt_handle();
std::shared_ptr<cublasContext> shared_cublas_handle();

}  // namespace kbench::cuda
