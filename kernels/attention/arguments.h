// What fused causal self-attention computes, forward and backward, and its operands.
#pragma once

#include <cstdint>

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
    /// [batch * heads, seq] in fp32 (fp64 in fp64), or null: for each query log(sum of exp(scale * q k)), for the
    /// backward to read.
    void* lse = nullptr;
    /// The tile is that for so many query rows (batch * heads * seq); 0: for those of the problem.
    std::int64_t tile_rows = 0;
};

/// Backward (Dao et al., FlashAttention, 2022, algorithm 4): with P = exp(scale * q k^T - lse), causal,
/// D = the sum of dout * out over a head's columns, and dS = P * (dout v^T - D),
/// dq = scale * dS k, dk = scale * dS^T q, dv = P^T dout.
/// qkv, dqkv [batch * seq, 3 * heads * head_size], out, dout [batch * seq, heads * head_size], lse [batch * heads,
/// seq]: device pointers, 16-byte aligned, types as in forward. P and dS are rounded to the multiplier's format; sums
/// are kept in fp32 (fp64 in fp64). Results have the same bits in every run, because nothing is summed by atomics:
/// one kernel makes dq for blocks of queries, another dk and dv for blocks of keys. The price is that both compute
/// q k^T and dout v^T: 7 products where 5 would do.
struct AttentionGradientArguments {
    const void *qkv, *out, *dout, *lse;
    void* dqkv;
    void* workspace;  ///< attention_gradient_workspace bytes
    std::int64_t batch, heads, seq, head_size;
    double scale;
    Precision precision;
};

}  // namespace kbench::cuda
