// Steps through oneDNN on the CPU: one class per kind of step, made once and run many times.
// A weight may be wanted in the primitive's own layout: ask `packed_bytes`, then call `pack`. run() never
// allocates.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cpu/native/recurrent.h"
#include "kbench/operand.h"
#include "kbench/precision.h"
#include "models/ops/attention.h"
#include "models/ops/conv2d.h"
#include "models/ops/gemm.h"
#include "models/ops/layernorm.h"

namespace kbench::cpu {

/// Text such as "oneDNN 3.2.0".
std::string onednn_version();
/// The widest ISA that oneDNN uses here, such as "avx512_core_amx"; at least "sse41".
std::string onednn_isa();
/// Returns "" when oneDNN can compute in `precision` on this CPU, else why not, such as
/// "fp16 needs AVX512_FP16; this CPU has avx512_core_bf16".
std::string onednn_unsupported(Precision precision);

/// out = epilogue(x · w): + bias [n], an activation, + residual [m, n], each optional, as post-ops. x [m, k] and out
/// [m, n] are dense; all have storage_type(precision). The plain w is [k, n], or [n, k] when weight_transposed. Throws
/// Unsupported.
class Matmul {
  public:
    Matmul(const Gemm& gemm, Precision precision, bool bias, std::optional<Activation> activation, bool residual);
    ~Matmul();
    std::size_t packed_bytes() const;  ///< bytes of the packed weight
    void pack(const void* plain, void* packed) const;
    std::size_t workspace_bytes() const;
    /// `bias` and `residual` are null when not asked for. out must not alias x; out may alias residual.
    void run(const void* x, const void* packed_w, const void* bias, const void* residual, void* out,
             void* workspace) const;
    std::string implementation() const;  ///< impl_info_str()

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// out = left · right, plus what `out` held where it accumulates: dense, row-major, of storage_type(precision), as in
/// `product`. Nothing is packed, which would not pay for operands that change at each step. Throws Unsupported.
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
    void run(In<"x"> x, In<"weight"> weight, In<"bias"> bias, Out<"out"> out, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Fused causal attention on blocks of query rows of one head, with the scores of one block at a time (never those of
/// all heads). oneDNN computes the matrix products, our own vector code the softmax in fp32. Threads share (head,
/// block) pairs.
class CausalAttention {
  public:
    CausalAttention(const Attention& attention, Precision precision);
    ~CausalAttention();
    std::size_t workspace_bytes() const;
    /// `lse` [batch * heads, seq] may be null.
    void run(In<"qkv"> qkv, Out<"lse?"> lse, Out<"out"> out, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Backward of causal attention on blocks of keys of one head with ranges of queries. oneDNN computes the 5 matrix
/// products of each, our own vector code the exponentials and dS in fp32. P and dS are rounded to
/// storage_type(precision), all sums are fp32. Results are the same in every run with as many threads.
class CausalAttentionGradient {
  public:
    CausalAttentionGradient(const Attention& attention, Precision precision);
    ~CausalAttentionGradient();
    std::size_t workspace_bytes() const;
    void run(In<"qkv"> qkv, In<"out"> out, In<"dout"> dout, In<"lse"> lse, Out<"dqkv"> dqkv, void* workspace) const;
    std::string implementation() const;  ///< one text per product

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
    /// Kind::scores only.
    void run_scores(In<"qkv"> qkv, Out<"scores"> scores, void* workspace) const;
    /// Kind::context only.
    void run_context(In<"probabilities"> probabilities, In<"qkv"> qkv, Out<"out"> out, void* workspace) const;
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
    /// `bias` is null where the op has none.
    void run(const void* x, const void* packed_weight, const void* bias, void* out, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A convolution's backward: dgrad, or wgrad with its bias; arrays as in models/ops/, not packed. oneDNN makes dw and
/// db in fp32; they are rounded or accumulated once. Results are the same in every run with as many threads.
class ConvolutionGradient {
  public:
    /// `direction` is dgrad or wgrad. Throws Unsupported.
    ConvolutionGradient(const Conv2d& op, Direction direction, Precision precision);
    ~ConvolutionGradient();
    std::size_t workspace_bytes() const;
    void run_dgrad(In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx, void* workspace) const;
    /// db is null where the op has no bias.
    void run_wgrad(In<"x"> x, In<"dy"> dy, Out<"dw"> dw, Out<"db?"> db, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Both directions of a recurrent layer after its input's product, step by step. oneDNN multiplies h with blocks of the
/// packed weight_hh (Bf16Panels does for few sequences in bf16), our own vector code computes the cell. Sums and c are
/// fp32; h between steps has storage_type(precision). Backward does the same with db for h. Results do not depend on
/// the number of threads once it is made.
class RecurrentLayer {
  public:
    /// `direction` is fwd or bwd.
    RecurrentLayer(Cell cell, const RecurrentShape& shape, Precision precision, Direction direction = Direction::fwd);
    ~RecurrentLayer();
    std::size_t packed_bytes() const;  ///< per direction's weight_hh
    void pack(const void* plain, void* packed) const;
    /// The same for packing with all threads, in `workspace` of packing_bytes.
    std::size_t packing_bytes() const;
    void pack(const void* plain, void* packed, void* workspace) const;
    std::size_t workspace_bytes() const;
    /// Runs with both weight_hh packed.
    void run(const RecurrentDirection& forward, const RecurrentDirection& reverse, const std::int32_t* lengths,
             void* workspace) const;
    void run_back(const RecurrentGradientDirection& forward, const RecurrentGradientDirection& reverse,
                  const std::int32_t* lengths, void* workspace) const;
    std::string implementation() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Gradients of a recurrent layer's weights: a product per direction by oneDNN, sums over columns by our own loops.
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
