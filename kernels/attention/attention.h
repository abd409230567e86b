// Fused causal self-attention: one kernel forward, two or three backward. q, k and v lie as one projection writes them.
// Nothing here allocates or waits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include "kernels/attention/arguments.h"

namespace kbench::cuda {

/// Launches on `stream`. Throws Unsupported for a head_size over the kernels' limit (the reason names it).
void attention_forward(const AttentionArguments& arguments, cudaStream_t stream);

/// The kernel that attention_forward would launch: precision, the head size it is built for, and its tile (query rows x
/// keys x groups of warps that split the keys), such as "attention_mma<fp16,64,64x64x2>".
std::string attention_kernel_name(const AttentionArguments& arguments);

/// Bytes for lse and D of every query. Only shape and precision of the arguments are read.
std::size_t attention_gradient_workspace(const AttentionGradientArguments& arguments);
/// Launches on `stream`. Throws Unsupported for a head_size over the kernels' limit (the reason names it).
void attention_backward(const AttentionGradientArguments& arguments, cudaStream_t stream);
/// The kernels that attention_backward would launch: the head size that they are built for and their tile (rows that a
/// block owns x rows that it reads at a time), such as "attention_gradient_mma<fp16,64,128x64>".
std::string attention_gradient_kernel_name(const AttentionGradientArguments& arguments);

}  // namespace kbench::cuda
