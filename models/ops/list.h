// kbench's own op kinds, as one list. A new kind is a file in this folder, an include here and a place below.
#pragma once

#include "models/ops/activation.h"
#include "models/ops/adamw.h"
#include "models/ops/attention.h"
#include "models/ops/attention_context.h"
#include "models/ops/attention_scores.h"
#include "models/ops/batchnorm.h"
#include "models/ops/bias.h"
#include "models/ops/cached_attention.h"
#include "models/ops/conv2d.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/ctc.h"
#include "models/ops/embedding.h"
#include "models/ops/embedding_at.h"
#include "models/ops/fill_cache.h"
#include "models/ops/gemm.h"
#include "models/ops/global_norm.h"
#include "models/ops/hardtanh.h"
#include "models/ops/last_token.h"
#include "models/ops/layernorm.h"
#include "models/ops/qk_norm.h"
#include "models/ops/recurrent.h"
#include "models/ops/residual.h"
#include "models/ops/rmsnorm.h"
#include "models/ops/rotary_embedding.h"
#include "models/ops/scale_mask.h"
#include "models/ops/softmax.h"
#include "models/ops/swiglu.h"
#include "models/ops/time_mask.h"
#include "models/ops/to_sequence.h"
#include "models/ops/token_embedding.h"

namespace kbench {

template <OpStruct... T>
struct OpList {};

using Activations = OpList<Gelu, GeluFast, GeluErf, QuickGelu, Relu, Silu, Tanh>;

/// The kinds in the order in which tables show them.
using BuiltInOps = OpList<Embedding,         //
                          EmbeddingAt,       //
                          TokenEmbedding,    //
                          LayerNorm,         //
                          RmsNorm,           //
                          Gemm,              //
                          BiasAdd,           //
                          Gelu,              //
                          GeluFast,          //
                          GeluErf,           //
                          QuickGelu,         //
                          Relu,              //
                          Silu,              //
                          Tanh,              //
                          SwiGlu,            //
                          ResidualAdd,       //
                          Attention,         //
                          AttentionScores,   //
                          ScaleMask,         //
                          Softmax,           //
                          AttentionContext,  //
                          CachedAttention,   //
                          FillCache,         //
                          LastToken,         //
                          QkNorm,            //
                          RotaryEmbedding,   //
                          Conv2d,            //
                          BatchNorm,         //
                          Hardtanh,          //
                          TimeMask,          //
                          ToSequence,        //
                          Lstm,              //
                          Gru,               //
                          Rnn,               //
                          CrossEntropy,      //
                          Ctc,               //
                          GlobalNorm,        //
                          AdamW>;

}  // namespace kbench
