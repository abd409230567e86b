// fp64 (and fp32) through CBLAS: what oneDNN cannot do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kbench/precision.h"
#include "models/ops/attention.h"
#include "models/ops/conv2d.h"
#include "models/ops/gemm.h"

namespace kbench::cpu {

/// Such as "OpenBLAS 0.3.21 Zen, 16 threads".
std::string blas_version();

/// OpenBLAS picks its kernels when it is loaded, by a list of CPU models that ends before the newest: OpenBLAS 0.3.21
/// takes an Emerald Rapids in a virtual machine for "Prescott", whose kernels stop at SSE3 (0.36 TFLOP/s fp64 on 16
/// cores where 1.07 are possible). Given the `core` it picked and the CPU's `isa`, the value that OPENBLAS_CORETYPE
/// should have had; empty when the choice is good.
std::string better_blas_core(std::string_view core, const std::vector<std::string>& isa);
/// The core type that OpenBLAS picked here.
std::string blas_core();

/// out = left · right, and plus what `out` held where it accumulates, dense and row-major as `product` has them; type
/// fp64 or fp32, else Unsupported.
void blas_gemm(DataType type, const Gemm::Product& product, const void* left, const void* right, void* out,
               bool accumulates = false);

/// Fused causal attention in fp64 or fp32 with CBLAS products on blocks of query rows, one thread a (head, block) pair;
/// `lse` may be null; `workspace` of blas_attention_workspace bytes.
std::size_t blas_attention_workspace(DataType type, const Attention& attention);
void blas_attention(DataType type, const Attention& attention, const void* qkv, void* lse, void* out, void* workspace);

/// The convolution by im2col in fp64 or fp32, products of one piece a thread; bias: null where the op has none.
std::size_t blas_conv2d_workspace(DataType type, const Conv2d& op);
void blas_conv2d(DataType type, const Conv2d& op, const void* x, const void* weight, const void* bias, void* out,
                 void* workspace);

/// Unfused attention's products over all batches and heads, fp64 or fp32.
void blas_attention_scores(DataType type, const AttentionShape& shape, const void* qkv, void* scores);
void blas_attention_context(DataType type, const AttentionShape& shape, const void* probabilities, const void* qkv,
                            void* out);

}  // namespace kbench::cpu
