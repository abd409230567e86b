// Token and position embedding on the CPU, for every stored type. Arithmetic is fp32 (fp64 for fp64); shapes as in
// models/ops/; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/embedding.h"
#include "models/ops/embedding_at.h"
#include "models/ops/token_embedding.h"

namespace kbench::cpu {

void embedding(DataType type, const Embedding& op, In<"tokens", std::int32_t> tokens, In<"wte"> wte, In<"wpe"> wpe,
               Out<"out"> out);

/// Positions are taken as they are: each must leave room for its sequence's tokens in wpe.
void embedding_at(DataType type, const EmbeddingAt& op, In<"tokens", std::int32_t> tokens,
                  In<"positions", std::int32_t> positions, In<"wte"> wte, In<"wpe"> wpe, Out<"out"> out);

void token_embedding(DataType type, const TokenEmbedding& op, In<"tokens", std::int32_t> tokens, In<"table"> table,
                     Out<"out"> out);

/// Backward: sums in ascending row order, so that results do not depend on the number of threads. Where `op`
/// accumulates, they are added to dwte or dwpe, and only rows of tokens or positions that occur are touched.
/// `workspace` has embedding_gradient_workspace bytes.
std::size_t embedding_gradient_workspace(const Embedding& op);
void embedding_gradient(DataType type, const Embedding& op, In<"tokens", std::int32_t> tokens, In<"dout"> dout,
                        Out<"dwte"> dwte, Out<"dwpe"> dwpe, void* workspace);

}  // namespace kbench::cpu
