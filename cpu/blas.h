// fp64 (and fp32) through CBLAS: what oneDNN cannot do.
#pragma once

#include <string>

#include "models/op.h"
#include "models/precision.h"

namespace kbench::cpu {

/// Such as "OpenBLAS 0.3.21 Zen, 16 threads".
std::string blas_version();

/// out = x · w, row-major; w is [k, n], or [n, k] when gemm.weight_transposed; type fp64 or fp32, else Unsupported.
void blas_gemm(DataType type, const Gemm& gemm, const void* x, const void* w, void* out);

/// Fused causal attention in fp64 or fp32 with CBLAS products on blocks of query rows, one thread a (head, block) pair;
/// `workspace` of blas_attention_workspace bytes.
std::size_t blas_attention_workspace(DataType type, const Attention& attention);
void blas_attention(DataType type, const Attention& attention, const void* qkv, void* out, void* workspace);

/// Unfused attention's products over all batches and heads, fp64 or fp32.
void blas_attention_scores(DataType type, const AttentionShape& shape, const void* qkv, void* scores);
void blas_attention_context(DataType type, const AttentionShape& shape, const void* probabilities, const void* qkv,
                            void* out);

}  // namespace kbench::cpu
