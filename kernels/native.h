// The launchers of the native, memory-bound kernels. Every pointer is a device pointer, every matrix row-major and
// dense unless a leading dimension is given; element type is storage_type of the model's precision.
// Nothing here allocates or waits; each call launches on `stream`. Arithmetic is in fp32 (fp64 for fp64).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "models/base/precision.h"
#include "models/ops/list.h"

namespace kbench::cuda {

/// out[r, :] = wte[tokens[r], :] + wpe[r % seq, :]; out [rows, width]. (embedding.cu)
void embedding_forward(DataType type, const std::int32_t* tokens, const void* wte, const void* wpe, void* out,
                       std::int64_t rows, std::int64_t seq, std::int64_t width, cudaStream_t stream);

/// The widest row that layer_norm_forward keeps in registers.
inline constexpr std::int64_t layer_norm_max_width = 16384;

/// Layer norm with whatever precedes it fused: s = x + pre_bias + residual; sum_out = s; out = norm(s) * weight + bias.
/// x, residual, sum_out, out [rows, width]; pre_bias, weight, bias [width]. pre_bias, residual and sum_out may each be
/// null (sum_out is then not written). sum_out may alias residual or x. Statistics over the unrounded fp32 sum, two
/// passes over registers. (layernorm.cu)
void layer_norm_forward(DataType type, const void* x, const void* pre_bias, const void* residual, const void* weight,
                        const void* bias, void* sum_out, void* out, std::int64_t rows, std::int64_t width,
                        double epsilon, cudaStream_t stream);

/// out = x + bias, in place allowed; x, out [rows, width], bias [width]. (elementwise.cu)
void bias_add_forward(DataType type, const void* x, const void* bias, void* out, std::int64_t rows, std::int64_t width,
                      cudaStream_t stream);
/// out = gelu_tanh(x + bias), bias may be null, in place allowed. (elementwise.cu)
void bias_gelu_forward(DataType type, const void* x, const void* bias, void* out, std::int64_t rows, std::int64_t width,
                       cudaStream_t stream);
/// out = x + residual, in place allowed; `count` elements. (elementwise.cu)
void residual_add_forward(DataType type, const void* x, const void* residual, void* out, std::int64_t count,
                          cudaStream_t stream);

/// In place: scores[i, j] = scale * scores[i, j] for j <= i % seq, -inf elsewhere; scores [rows, seq],
/// rows = batch * heads * seq. (softmax.cu)
void scale_mask_forward(DataType type, void* scores, std::int64_t rows, std::int64_t seq, double scale,
                        cudaStream_t stream);
/// probabilities[r, :] = softmax(scores[r, :]); entries of -inf give 0. `scores_type` may be fp32 while
/// `probabilities_type` is 16 bits (upcast); when both have the same size, in place is allowed. (softmax.cu)
void softmax_forward(DataType scores_type, const void* scores, DataType probabilities_type, void* probabilities,
                     std::int64_t rows, std::int64_t width, cudaStream_t stream);

}  // namespace kbench::cuda
