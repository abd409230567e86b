// Provider `onednn`: GEMMs with post-ops, layer norm, attention, convolutions and recurrent layers in fp32, bf16 and
// fp16.
#include "cpu/onednn/onednn.h"

#include <algorithm>
#include <utility>

#include "bench/plan/provider.h"
#include "bench/plan/providers/recurrent_operands.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

class MatmulComputation final : public Computation {
  public:
    MatmulComputation(const Gemm& op, const Step& step, Precision precision)
        : bias_(step.absorbs<BiasAdd>()),
          residual_(step.absorbs<ResidualAdd>()),
          matmul_(padded(op, step), precision, bias_, absorbed_activation(step), residual_) {}
    std::string implementation() const override { return matmul_.implementation(); }
    std::size_t workspace_bytes() const override { return matmul_.workspace_bytes(); }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        return index == 1 ? std::optional(matmul_.packed_bytes()) : std::nullopt;
    }
    void pack(std::size_t, const void* plain, void* packed) const override { matmul_.pack(plain, packed); }
    void run(std::span<void* const> pointers, void* workspace, void*) const override {
        OperandCursor in(pointers);
        const void* x = in.next();
        const void* w = in.next();
        const void* bias = in.next_if(bias_);
        const void* residual = in.next_if(residual_);
        matmul_.run(x, w, bias, residual, in.next(), workspace);
    }

  private:
    /// The product as it is computed: its weight has rows of zeros up to the padded columns, its output that many.
    static Gemm padded(Gemm gemm, const Step& step) {
        if (step.padded_columns > 0) gemm.n = step.padded_columns;
        return gemm;
    }

    bool bias_, residual_;
    cpu::Matmul matmul_;
};

/// A cpu/onednn class with `implementation` and `workspace_bytes`, and how to call it.
template <class Primitive, class Run>
class PrimitiveComputation final : public Computation {
  public:
    PrimitiveComputation(std::unique_ptr<Primitive> primitive, Run run)
        : primitive_(std::move(primitive)), run_(std::move(run)) {}
    std::string implementation() const override { return primitive_->implementation(); }
    std::size_t workspace_bytes() const override { return primitive_->workspace_bytes(); }
    void run(std::span<void* const> pointers, void* workspace, void*) const override {
        run_(*primitive_, OperandCursor(pointers), workspace);
    }

  private:
    std::unique_ptr<Primitive> primitive_;
    Run run_;
};

template <class Primitive, class Run>
std::unique_ptr<Computation> wrap(std::unique_ptr<Primitive> primitive, Run run) {
    return std::make_unique<PrimitiveComputation<Primitive, Run>>(std::move(primitive), std::move(run));
}

/// Computes on operands as they are, none packed.
std::unique_ptr<Computation> plain_matmul(const Gemm& op, const Step& step, Precision precision) {
    const Gemm::Product product = op.product(step.direction, step.padded_columns);
    const bool accumulates = op.accumulates && step.direction == Direction::wgrad;
    return wrap(std::make_unique<cpu::PlainMatmul>(product, precision, accumulates),
                [swapped = product.left_is_second](const cpu::PlainMatmul& p, OperandCursor in, void* workspace) {
                    const void* left = in.next();
                    const void* right = in.next();
                    if (swapped) std::swap(left, right);
                    p.run(left, right, in.next(), workspace);
                });
}

std::unique_ptr<Computation> matmul(const Gemm& op, const Step& step, Precision precision) {
    if (step.weights_change) return plain_matmul(op, step, precision);
    return std::make_unique<MatmulComputation>(op, step, precision);
}

std::unique_ptr<Computation> layer_norm(const LayerNorm& op, const Step&, Precision precision) {
    return wrap(std::make_unique<cpu::Normalise>(op, precision),
                [](const cpu::Normalise& p, OperandCursor in, void* workspace) {
                    const void* x = in.next();
                    const void* weight = in.next();
                    const void* bias = in.next();
                    p.run(x, weight, bias, in.next(), workspace);
                });
}

std::unique_ptr<Computation> attention(const Attention& op, const Step&, Precision precision) {
    return wrap(std::make_unique<cpu::CausalAttention>(op, precision),
                [saves_lse = op.saves_lse](const cpu::CausalAttention& p, OperandCursor in, void* workspace) {
                    const void* qkv = in.next();
                    auto* lse = static_cast<float*>(in.next_if(saves_lse));
                    p.run(qkv, lse, in.next(), workspace);
                });
}

std::unique_ptr<Computation> attention_gradient(const Attention& op, const Step&, Precision precision) {
    return wrap(std::make_unique<cpu::CausalAttentionGradient>(op, precision),
                [](const cpu::CausalAttentionGradient& p, OperandCursor in, void* workspace) {
                    const void* qkv = in.next();
                    const void* out = in.next();
                    const void* dout = in.next();
                    const auto* lse = in.next<const float>();
                    p.run(qkv, out, dout, lse, in.next(), workspace);
                });
}

using cpu::BatchedAttentionProduct;

std::unique_ptr<Computation> scores(const AttentionScores& op, const Step&, Precision precision) {
    return wrap(std::make_unique<BatchedAttentionProduct>(BatchedAttentionProduct::Kind::scores, op.shape, precision,
                                                          op.upcast),
                [](const BatchedAttentionProduct& p, OperandCursor in, void* workspace) {
                    const void* qkv = in.next();
                    p.run(qkv, nullptr, in.next(), workspace);
                });
}

std::unique_ptr<Computation> context(const AttentionContext& op, const Step&, Precision precision) {
    return wrap(
        std::make_unique<BatchedAttentionProduct>(BatchedAttentionProduct::Kind::context, op.shape, precision, false),
        [](const BatchedAttentionProduct& p, OperandCursor in, void* workspace) {
            const void* probabilities = in.next();
            const void* qkv = in.next();
            p.run(qkv, probabilities, in.next(), workspace);
        });
}

/// Its weight is packed once where it stays as it is, otherwise in every run, behind the primitive's workspace.
class ConvolutionComputation final : public Computation {
  public:
    ConvolutionComputation(const Conv2d& op, Precision precision, bool packs_in_run)
        : has_bias_(op.bias), packs_in_run_(packs_in_run), convolution_(op, precision) {}
    std::string implementation() const override { return convolution_.implementation(); }
    std::size_t workspace_bytes() const override {
        return weight_offset() + (packs_in_run_ ? convolution_.packed_bytes() : 0);
    }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        return index == 1 && !packs_in_run_ ? std::optional(convolution_.packed_bytes()) : std::nullopt;
    }
    void pack(std::size_t, const void* plain, void* packed) const override { convolution_.pack(plain, packed); }
    void run(std::span<void* const> pointers, void* workspace, void*) const override {
        OperandCursor in(pointers);
        const void* x = in.next();
        const void* weight = in.next();
        const void* bias = in.next_if(has_bias_);
        if (packs_in_run_) {
            void* const packed = static_cast<char*>(workspace) + weight_offset();
            convolution_.pack(weight, packed);
            weight = packed;
        }
        convolution_.run(x, weight, bias, in.next(), workspace);
    }

  private:
    std::size_t weight_offset() const { return (convolution_.workspace_bytes() + 63) / 64 * 64; }

    bool has_bias_, packs_in_run_;
    cpu::Convolution convolution_;
};

/// n8c32h81w500k32r21s11u2p10q5 and n8c1h161w1000k32r41s11u2v2p20q5 in fp32 on one core: 0.44 and 0.06 s, where CBLAS
/// takes 1.68 and 0.20 and the native loops 2.58 and 0.30.
std::unique_ptr<Computation> convolution(const Conv2d& op, const Step& step, Precision precision) {
    return std::make_unique<ConvolutionComputation>(op, precision, step.weights_change);
}

std::unique_ptr<Computation> convolution_gradient(const Conv2d& op, const Step& step, Precision precision) {
    return wrap(std::make_unique<cpu::ConvolutionGradient>(op, step.direction, precision),
                [is_dgrad = step.direction == Direction::dgrad, has_bias = op.bias](const cpu::ConvolutionGradient& p,
                                                                                    OperandCursor in, void* workspace) {
                    const void* first = in.next();
                    const void* second = in.next();
                    void* made = in.next();
                    if (is_dgrad) return p.run_dgrad(first, second, made, workspace);
                    p.run_wgrad(first, second, made, in.next_if(has_bias), workspace);
                });
}

/// A pass over a recurrent layer's steps, forward or backward. Each weight_hh, operand 2 or 3 of both, is packed once
/// where weights stay as they are, otherwise in every run.
class RecurrentComputation final : public Computation {
  public:
    RecurrentComputation(Cell cell, const RecurrentShape& shape, const Step& step, Precision precision, bool saves)
        : cell_(cell),
          saves_(saves),
          backward_(step.direction == Direction::bwd),
          packs_in_run_(step.weights_change),
          layer_(cell, shape, precision, step.direction) {}
    std::string implementation() const override { return layer_.implementation(); }
    std::size_t workspace_bytes() const override {
        if (!packs_in_run_) return layer_.workspace_bytes();
        return 2 * layer_.packed_bytes() + std::max(layer_.packing_bytes(), layer_.workspace_bytes());
    }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        const bool is_weight = index == 2 || index == 3;
        return is_weight && !packs_in_run_ ? std::optional(layer_.packed_bytes()) : std::nullopt;
    }
    void pack(std::size_t, const void* plain, void* packed) const override { layer_.pack(plain, packed); }
    void run(std::span<void* const> pointers, void* workspace, void*) const override {
        const OperandCursor in(pointers);
        if (backward_)
            run(RecurrentGradientOperands(cell_, in), workspace,
                [this](const auto&... all) { layer_.run_back(all...); });
        else
            run(RecurrentOperands(cell_, saves_, in), workspace, [this](const auto&... all) { layer_.run(all...); });
    }

  private:
    template <class Operands, class Run>
    void run(Operands operands, void* workspace, const Run& of_layer) const {
        char* memory = static_cast<char*>(workspace);
        if (packs_in_run_) {
            char* const packing = memory + 2 * layer_.packed_bytes();
            for (auto* direction : {&operands.forward, &operands.reverse}) {
                layer_.pack(direction->weight_hh, memory, packing);
                direction->weight_hh = std::exchange(memory, memory + layer_.packed_bytes());
            }
        }
        of_layer(operands.forward, operands.reverse, operands.lengths, memory);
    }

    Cell cell_;
    bool saves_, backward_, packs_in_run_;
    cpu::RecurrentLayer layer_;
};

/// In fp32 only on request: its products of a few rows take longer than the native loops'.
template <Cell cell>
ProviderOp recurrent_row(std::vector<Precision> precisions, bool on_request_only) {
    return Computes<Recurrent<cell>>{.directions = {Direction::fwd, Direction::bwd},
                                     .precisions = std::move(precisions),
                                     .on_request_only = on_request_only,
                                     .make = [](const Recurrent<cell>& op, const Step& step, Precision precision) {
                                         return std::make_unique<RecurrentComputation>(cell, op.shape, step, precision,
                                                                                       op.saves);
                                     }};
}
template <Cell cell>
ProviderOp recurrent_row() {
    return recurrent_row<cell>({Precision::fp16, Precision::bf16}, false);
}
template <Cell cell>
ProviderOp recurrent_row_in_fp32() {
    return recurrent_row<cell>({Precision::fp32}, true);
}

/// Sums of products of all rows at once.
template <Cell cell>
ProviderOp recurrent_weights_row() {
    return Computes<Recurrent<cell>>{
        .directions = {Direction::wgrad}, .make = [](const Recurrent<cell>& op, const Step&, Precision precision) {
            return wrap(std::make_unique<cpu::RecurrentWeights>(cell, op.shape, precision, op.accumulates),
                        [](const cpu::RecurrentWeights& p, OperandCursor in, void* workspace) {
                            const RecurrentWeightOperands operands(cell, in);
                            p.run(operands.forward, operands.reverse, workspace);
                        });
        }};
}

/// A bias, and behind it any activation or a residual.
std::vector<Absorbed> epilogues() {
    std::vector<Absorbed> all{{"bias"}, {"bias", "residual"}};
    for (const ActivationFacts& activation : activation_table) all.push_back({"bias", activation.kind});
    return all;
}

std::string no_epilogue_here(const Gemm&, const Step& step, Precision) {
    if (step.ops.size() == 1) return "";
    if (step.weights_change) return "its epilogues are for packed weights, which change in training";
    return step.padded_columns == 0 ? "" : "no epilogue on padded columns";
}

}  // namespace

std::unique_ptr<Provider> make_onednn(const ProviderContext&) {
    return std::make_unique<Provider>(Provider{
        .name = "onednn",
        .ops = {Computes<Gemm>{.absorbs = epilogues(), .why_not = no_epilogue_here, .make = matmul},
                Computes<Gemm>{.directions = {Direction::dgrad, Direction::wgrad}, .make = plain_matmul},
                Computes<LayerNorm>{.make = layer_norm}, Computes<Attention>{.make = attention},
                Computes<Attention>{.directions = {Direction::bwd}, .make = attention_gradient},
                Computes<AttentionScores>{.make = scores}, Computes<AttentionContext>{.make = context},
                Computes<Conv2d>{.make = convolution},
                Computes<Conv2d>{.directions = {Direction::dgrad, Direction::wgrad}, .make = convolution_gradient},
                recurrent_row<Cell::lstm>(), recurrent_row<Cell::gru>(), recurrent_row<Cell::rnn>(),
                recurrent_row_in_fp32<Cell::lstm>(), recurrent_row_in_fp32<Cell::gru>(),
                recurrent_row_in_fp32<Cell::rnn>(), recurrent_weights_row<Cell::lstm>(),
                recurrent_weights_row<Cell::gru>(), recurrent_weights_row<Cell::rnn>()},
        .lacks = cpu::onednn_unsupported,
        .packs_weights = true});
}

}  // namespace kbench
