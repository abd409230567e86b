// Steps through oneDNN on the CPU: one class a step kind, made once, run many times.
// Weights may be wanted in the primitive's own layout: ask `packed_bytes`, then `pack`. Nothing here allocates in
// run().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cpu/native/recurrent.h"
#include "kbench/precision.h"
#include "models/ops/attention.h"
#include "models/ops/conv2d.h"
#include "models/ops/gemm.h"
#include "models/ops/layernorm.h"

namespace kbench::cpu {

/// "oneDNN 3.2.0".
std::string onednn_version();
/// The widest ISA that oneDNN uses here, such as "avx512_core_amx" ("sse41" at the least).
std::string onednn_isa();
/// Empty when oneDNN can compute in `precision` on this CPU, otherwise the reason it cannot, such as
/// "fp16 needs AVX512_FP16; this CPU has avx512_core_bf16".
std::string onednn_unsupported(Precision precision);

/// out = epilogue(x · w): + bias [n], an activation, + residual [m, n], each optional, as post-ops. x [m, k], out [m,
/// n] dense in storage_type(precision); bias in storage_type(precision). w plain is [k, n], or [n, k] when
/// weight_transposed. Throws Unsupported.
class Matmul {
  public:
    Matmul(const Gemm& gemm, Precision precision, bool bias, std::optional<Activation> activation, bool residual);
    ~Matmul();
    std::size_t packed_bytes() const;  ///< bytes of the packed weight
    void pack(const void* plain, void* packed) const;
    std::size_t workspace_bytes() const;
    /// `bias`, `residual` null when not asked for. out must not alias x; out may alias residual.
    void run(const void* x, const void* packed_w, const void* bias, const void* residual, void* out,
             void* workspace) const;
    std::string implementation() const;  ///< impl_info_str()

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// out = left · right, and plus what `out` held where it accumulates, dense and row-major as `product` has them, in
/// storage_type(precision), neither of them packed: what changes from step to step is not worth it. Throws Unsupported.
class PlainMatmul {
  public:
    PlainMatmul(const Gemm::Product& product, Precision precision, bool accumulates = false);
    ~PlainMatmul();
    std::size_t workspace_bytes() const;
    void run(const void* left, const void* right, void* out, void* workspace) const;
    std::string implementation() const;  ///< impl_info_str()

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Layer norm through oneDNN's primitive; arrays as in models/ops/.
class Normalise {
  public:
    Normalise(const LayerNorm& norm, Precision precision);
    ~Normalise();
    std::size_t workspace_bytes() const;
    void run(const void* x, const void* weight, const void* bias, void* out, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Fused causal attention: blocks of query rows of one head at a time, scores of one block only (never those of all
/// heads at once), matrix products by oneDNN, softmax by our own vector code in fp32; threads share (head, block)
/// pairs.
class CausalAttention {
  public:
    CausalAttention(const Attention& attention, Precision precision);
    ~CausalAttention();
    std::size_t workspace_bytes() const;
    /// `lse` [batch * heads, seq] may be null.
    void run(const void* qkv, float* lse, void* out, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Backward of causal attention: blocks of keys of one head with ranges of queries, 5 matrix products of each by
/// oneDNN, the exponentials and dS by our own vector code in fp32. P and dS are rounded to storage_type(precision); all
/// sums are fp32. The same on every run with as many threads.
class CausalAttentionGradient {
  public:
    CausalAttentionGradient(const Attention& attention, Precision precision);
    ~CausalAttentionGradient();
    std::size_t workspace_bytes() const;
    void run(const void* qkv, const void* out, const void* dout, const float* lse, void* dqkv, void* workspace) const;
    std::string implementation() const;  ///< of all its products, each once

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Unfused attention's two products, over all batches and heads: scores = q k^T, out = probabilities v.
class BatchedAttentionProduct {
  public:
    enum class Kind { scores, context };
    /// `upcast`: scores are stored in fp32 (Kind::scores only).
    BatchedAttentionProduct(Kind kind, const AttentionShape& shape, Precision precision, bool upcast);
    ~BatchedAttentionProduct();
    std::size_t workspace_bytes() const;
    /// scores: x is qkv, probabilities is null. context: x is qkv, probabilities is given.
    void run(const void* qkv, const void* probabilities, void* out, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A convolution with its bias; arrays as in models/ops/, the weight packed.
class Convolution {
  public:
    Convolution(const Conv2d& op, Precision precision);
    ~Convolution();
    std::size_t packed_bytes() const;
    void pack(const void* plain, void* packed) const;
    std::size_t workspace_bytes() const;
    /// `bias`: null where the op has none.
    void run(const void* x, const void* packed_weight, const void* bias, void* out, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A convolution's backward: dgrad, or wgrad with its bias; arrays as in models/ops/, none packed. oneDNN makes dw and
/// db in fp32, which are rounded, or added to what is there, once. The same on every run with as many threads.
class ConvolutionGradient {
  public:
    /// direction: dgrad or wgrad. Throws Unsupported.
    ConvolutionGradient(const Conv2d& op, Direction direction, Precision precision);
    ~ConvolutionGradient();
    std::size_t workspace_bytes() const;
    void run_dgrad(const void* dy, const void* weight, void* dx, void* workspace) const;
    /// db: null where the op has no bias.
    void run_wgrad(const void* x, const void* dy, void* dw, void* db, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Both directions of a recurrent layer behind its input's product, step by step: products of h with blocks of the
/// packed weight_hh by oneDNN, or of a few sequences in bf16 by Bf16Panels, the cell by our own vector code; sums and c
/// in fp32, h between steps in storage_type(precision). Backward the same with db for h. The same bits on any number of
/// threads once it is made.
class RecurrentLayer {
  public:
    /// direction: fwd or bwd.
    RecurrentLayer(Cell cell, const RecurrentShape& shape, Precision precision, Direction direction = Direction::fwd);
    ~RecurrentLayer();
    std::size_t packed_bytes() const;  ///< of one direction's weight_hh
    void pack(const void* plain, void* packed) const;
    /// The same in `workspace` of packing_bytes, by all threads.
    std::size_t packing_bytes() const;
    void pack(const void* plain, void* packed, void* workspace) const;
    std::size_t workspace_bytes() const;
    /// Both weight_hh packed.
    void run(const RecurrentDirection& forward, const RecurrentDirection& reverse, const std::int32_t* lengths,
             void* workspace) const;
    void run_back(const RecurrentGradientDirection& forward, const RecurrentGradientDirection& reverse,
                  const std::int32_t* lengths, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Gradients of a recurrent layer's weights: a product of each direction by oneDNN, sums of columns by our own loops.
class RecurrentWeights {
  public:
    RecurrentWeights(Cell cell, const RecurrentShape& shape, Precision precision, bool accumulates);
    std::size_t workspace_bytes() const;
    void run(const RecurrentWeightDirection& forward, const RecurrentWeightDirection& reverse, void* workspace) const;
    std::string implementation() const;

  private:
    std::size_t db_bytes() const;

    Cell cell_;
    RecurrentShape shape_;
    DataType type_;
    bool accumulates_;
    std::unique_ptr<PlainMatmul> product_;  ///< none for a layer of one step
};

}  // namespace kbench::cpu
