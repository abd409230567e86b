// fp64 (and fp32) through CBLAS: what oneDNN cannot do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/attention.h"
#include "models/ops/conv2d.h"
#include "models/ops/gemm.h"

namespace kbench::cpu {

/// Text such as "OpenBLAS 0.3.21 Zen, 16 threads".
std::string blas_version();

/// What OpenBLAS reads when it is loaded, and that kbench set it and not the user.
inline constexpr char blas_core_variable[] = "OPENBLAS_CORETYPE", blas_core_is_ours[] = "KBENCH_SET_OPENBLAS_CORETYPE";
/// The value that OPENBLAS_CORETYPE should have had, given the `core` that OpenBLAS picked and the CPU's `isa`; empty
/// when the choice is good. OpenBLAS picks its kernels on loading, from a list of CPU models that ends before the
/// newest: 0.3.21 takes an Emerald Rapids in a virtual machine for "Prescott", whose kernels stop at SSE3 (0.36 TFLOP/s
/// fp64 on 16 cores where 1.07 are possible).
std::string better_blas_core(std::string_view core, const std::vector<std::string>& isa);
/// The core type that OpenBLAS picked here.
std::string blas_core();

/// out = left · right, plus what `out` held if it accumulates; dense, row-major, transposed as `product` says. `type`
/// is fp64 or fp32, else throws Unsupported.
void blas_gemm(DataType type, const Gemm::Product& product, const void* left, const void* right, void* out,
               bool accumulates = false);

/// Fused causal attention in fp64 or fp32: CBLAS products on blocks of query rows, one thread per (head, block) pair.
/// `lse` may be null; `workspace` has blas_attention_workspace bytes.
std::size_t blas_attention_workspace(DataType type, const Attention& attention);
void blas_attention(DataType type, const Attention& attention, In<"qkv"> qkv, Out<"lse?"> lse, Out<"out"> out,
                    void* workspace);

/// The convolution by im2col in fp64 or fp32, one product per piece and thread; bias is null where the op has none.
std::size_t blas_conv2d_workspace(DataType type, const Conv2d& op);
void blas_conv2d(DataType type, const Conv2d& op, In<"x"> x, In<"weight"> weight, In<"bias?"> bias, Out<"out"> out,
                 void* workspace);

/// Unfused attention's products over all batches and heads, in fp64 or fp32.
void blas_attention_scores(DataType type, const AttentionShape& shape, const void* qkv, void* scores);
void blas_attention_context(DataType type, const AttentionShape& shape, const void* probabilities, const void* qkv,
                            void* out);

}  // namespace kbench::cpu
