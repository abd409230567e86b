// Launchers of the embedding kernels. Device pointers; matrices row-major and dense; elements of the model's
// storage_type, arithmetic in fp32 (fp64 for fp64). Nothing allocates or waits; launches go to `stream`.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/embedding.h"
#include "models/ops/embedding_at.h"
#include "models/ops/token_embedding.h"

namespace kbench::cuda {

/// out[r, :] = wte[tokens[r], :] + wpe[r % seq, :]; out [rows, width].
void embedding_forward(DataType type, const Embedding& op, In<"tokens", std::int32_t> tokens, In<"wte"> wte,
                       In<"wpe"> wpe, Out<"out"> out, cudaStream_t stream);

/// out[r, :] = wte[tokens[r], :] + wpe[positions[r / seq] + r % seq, :].
void embedding_at(DataType type, const EmbeddingAt& op, In<"tokens", std::int32_t> tokens,
                  In<"positions", std::int32_t> positions, In<"wte"> wte, In<"wpe"> wpe, Out<"out"> out,
                  cudaStream_t stream);

/// out[r, :] = table[tokens[r], :].
void token_embedding(DataType type, const TokenEmbedding& op, In<"tokens", std::int32_t> tokens, In<"table"> table,
                     Out<"out"> out, cudaStream_t stream);

/// dwte [vocab, width] and dwpe [positions, width] from dout [rows, width]. Where `op` accumulates, sums are added to
/// them, and only rows of tokens or positions that occur are touched. Same bits in every run. `workspace` has
/// embedding_gradient_workspace bytes.
std::size_t embedding_gradient_workspace(DataType type, const Embedding& op);
void embedding_gradient(DataType type, const Embedding& op, In<"tokens", std::int32_t> tokens, In<"dout"> dout,
                        Out<"dwte"> dwte, Out<"dwpe"> dwpe, void* workspace, cudaStream_t stream);

}  // namespace kbench::cuda
