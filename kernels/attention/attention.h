// Fused causal self-attention, one kernel a call. Layout as one projection to q, k and v writes it; nothing here
// allocates or waits.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "kbench/precision.h"

namespace kbench::cuda {

/// out = softmax(scale * q k^T, causal) v.
/// qkv [batch * seq, 3 * heads * head_size]: in each row all of q, then all of k, then all of v, each by head;
/// out [batch * seq, heads * head_size]. Both device pointers to storage_type(precision), 16-byte aligned, row-major.
/// Scores, softmax and sums are kept in fp32 (fp64 in fp64). fp16, bf16: mma.sync tensor cores; tf32: mma.sync on
/// operands rounded to tf32; fp32: FMA only; fp64: fp64 throughout.
struct AttentionArguments {
    const void* qkv;
    void* out;
    std::int64_t batch, heads, seq, head_size;
    double scale;
    Precision precision;
};

/// Launches on `stream`. Throws Unsupported for a head_size over the kernels' limit (the reason names it).
void attention_forward(const AttentionArguments& arguments, cudaStream_t stream);

/// The kernel that attention_forward would launch, with the head size it is built for and its tile (query rows x keys x
/// groups of warps that share the keys), such as "attention_mma<fp16,64,64x64x2>".
std::string attention_kernel_name(const AttentionArguments& arguments);

}  // namespace kbench::cuda
