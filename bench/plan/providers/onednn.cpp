// Provider `onednn`: GEMMs with post-ops, layer norm, attention, convolutions and recurrent layers in fp32, bf16 and
// fp16.
#include "cpu/onednn/onednn.h"

#include <algorithm>
#include <utility>

#include "bench/plan/bind.h"
#include "bench/plan/provider.h"
#include "bench/plan/providers/product_slots.h"
#include "bench/plan/providers/recurrent_operands.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

class MatmulComputation final : public Computation {
  public:
    MatmulComputation(const Gemm& op, const Step& step, Precision precision)
        : x_(step, precision, "x"),
          w_(step, precision, "w"),
          bias_(step, precision, "bias?"),
          residual_(step, precision, "residual?"),
          out_(step, precision, "out"),
          matmul_(padded(op, step), precision, step.absorbs<BiasAdd>(), absorbed_activation(step),
                  step.absorbs<ResidualAdd>()) {}
    std::string implementation() const override { return matmul_.implementation(); }
    std::size_t workspace_bytes() const override { return matmul_.workspace_bytes(); }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        return w_.is(index) ? std::optional(matmul_.packed_bytes()) : std::nullopt;
    }
    void pack(std::size_t, const void* plain, void* packed) const override { matmul_.pack(plain, packed); }
    void run(const Call& call) const override {
        matmul_.run(x_.of(call), w_.of(call), bias_.of(call), residual_.of(call), out_.of(call), call.workspace);
    }

  private:
    /// The product as it is computed: its weight has rows of zeros up to the padded columns, its output that many.
    static Gemm padded(Gemm gemm, const Step& step) {
        if (step.padded_columns > 0) gemm.n = step.padded_columns;
        return gemm;
    }

    Slot x_, w_, bias_, residual_, out_;
    cpu::Matmul matmul_;
};

/// A cpu/onednn class with `implementation` and `workspace_bytes`, and the member function that runs it on operands and
/// the workspace.
template <class Primitive, class... Parameters>
class PrimitiveComputation final : public Computation {
  public:
    using Run = void (Primitive::*)(Parameters...) const;
    PrimitiveComputation(std::unique_ptr<Primitive> primitive, Run function, const Step& step, Precision precision)
        : primitive_(std::move(primitive)), run_(function), arguments_(step, precision) {}
    std::string implementation() const override { return primitive_->implementation(); }
    std::size_t workspace_bytes() const override { return primitive_->workspace_bytes(); }
    void run(const Call& call) const override { arguments_.call(run_, call, *primitive_); }

  private:
    std::unique_ptr<Primitive> primitive_;
    Run run_;
    BoundArguments<Parameters...> arguments_;
};

template <class Primitive, class... Parameters>
std::unique_ptr<Computation> wrap(std::unique_ptr<Primitive> primitive, void (Primitive::*run)(Parameters...) const,
                                  const Step& step, Precision precision) {
    return std::make_unique<PrimitiveComputation<Primitive, Parameters...>>(std::move(primitive), run, step, precision);
}

/// Computes on operands as they are, none packed.
std::unique_ptr<Computation> plain_matmul(const Gemm& op, const Step& step, Precision precision) {
    const auto matmul =
        std::make_shared<const cpu::PlainMatmul>(op.product(step.direction, step.padded_columns), precision,
                                                 op.accumulates && step.direction == Direction::wgrad);
    const auto multiply = [matmul](const void* left, const void* right, void* out, void* workspace) {
        matmul->run(left, right, out, workspace);
    };
    return product_computation(matmul->implementation(), matmul->workspace_bytes(), op, step, precision, multiply);
}

std::unique_ptr<Computation> matmul(const Gemm& op, const Step& step, Precision precision) {
    if (step.weights_change) return plain_matmul(op, step, precision);
    return std::make_unique<MatmulComputation>(op, step, precision);
}

std::unique_ptr<Computation> layer_norm(const LayerNorm& op, const Step& step, Precision precision) {
    return wrap(std::make_unique<cpu::Normalise>(op, precision), &cpu::Normalise::run, step, precision);
}

std::unique_ptr<Computation> attention(const Attention& op, const Step& step, Precision precision) {
    return wrap(std::make_unique<cpu::CausalAttention>(op, precision), &cpu::CausalAttention::run, step, precision);
}

std::unique_ptr<Computation> attention_gradient(const Attention& op, const Step& step, Precision precision) {
    return wrap(std::make_unique<cpu::CausalAttentionGradient>(op, precision), &cpu::CausalAttentionGradient::run, step,
                precision);
}

using cpu::BatchedAttentionProduct;

std::unique_ptr<Computation> scores(const AttentionScores& op, const Step& step, Precision precision) {
    return wrap(std::make_unique<BatchedAttentionProduct>(BatchedAttentionProduct::Kind::scores, op.shape, precision,
                                                          op.upcast),
                &BatchedAttentionProduct::run_scores, step, precision);
}

std::unique_ptr<Computation> context(const AttentionContext& op, const Step& step, Precision precision) {
    return wrap(
        std::make_unique<BatchedAttentionProduct>(BatchedAttentionProduct::Kind::context, op.shape, precision, false),
        &BatchedAttentionProduct::run_context, step, precision);
}

/// Its weight is packed once where it stays as it is, otherwise in every run, behind the primitive's workspace.
class ConvolutionComputation final : public Computation {
  public:
    ConvolutionComputation(const Conv2d& op, const Step& step, Precision precision)
        : x_(step, precision, "x"),
          weight_(step, precision, "weight"),
          bias_(step, precision, "bias?"),
          out_(step, precision, "out"),
          packs_in_run_(step.weights_change),
          convolution_(op, precision) {}
    std::string implementation() const override { return convolution_.implementation(); }
    std::size_t workspace_bytes() const override {
        return weight_offset() + (packs_in_run_ ? convolution_.packed_bytes() : 0);
    }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        return weight_.is(index) && !packs_in_run_ ? std::optional(convolution_.packed_bytes()) : std::nullopt;
    }
    void pack(std::size_t, const void* plain, void* packed) const override { convolution_.pack(plain, packed); }
    void run(const Call& call) const override {
        const void* weight = weight_.of(call);
        if (packs_in_run_) {
            void* const packed = static_cast<char*>(call.workspace) + weight_offset();
            convolution_.pack(weight, packed);
            weight = packed;
        }
        convolution_.run(x_.of(call), weight, bias_.of(call), out_.of(call), call.workspace);
    }

  private:
    std::size_t weight_offset() const { return (convolution_.workspace_bytes() + 63) / 64 * 64; }

    Slot x_, weight_, bias_, out_;
    bool packs_in_run_;
    cpu::Convolution convolution_;
};

/// n8c32h81w500k32r21s11u2p10q5 and n8c1h161w1000k32r41s11u2v2p20q5 in fp32 on one core: 0.44 and 0.06 s, where CBLAS
/// takes 1.68 and 0.20 and the native loops 2.58 and 0.30.
std::unique_ptr<Computation> convolution(const Conv2d& op, const Step& step, Precision precision) {
    return std::make_unique<ConvolutionComputation>(op, step, precision);
}

std::unique_ptr<Computation> convolution_gradient(const Conv2d& op, const Step& step, Precision precision) {
    using cpu::ConvolutionGradient;
    auto gradient = std::make_unique<ConvolutionGradient>(op, step.direction, precision);
    if (step.direction == Direction::dgrad)
        return wrap(std::move(gradient), &ConvolutionGradient::run_dgrad, step, precision);
    return wrap(std::move(gradient), &ConvolutionGradient::run_wgrad, step, precision);
}

/// A pass over a recurrent layer's steps, forward or backward. Each weight_hh is packed once where weights stay as they
/// are, otherwise in every run.
class RecurrentComputation final : public Computation {
  public:
    RecurrentComputation(Cell cell, const RecurrentShape& shape, const Step& step, Precision precision)
        : slots_(step, precision),
          backward_(step.direction == Direction::bwd),
          packs_in_run_(step.weights_change),
          layer_(cell, shape, precision, step.direction) {}
    std::string implementation() const override { return layer_.implementation(); }
    std::size_t workspace_bytes() const override {
        if (!packs_in_run_) return layer_.workspace_bytes();
        return 2 * layer_.packed_bytes() + std::max(layer_.packing_bytes(), layer_.workspace_bytes());
    }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        return slots_.is_weight(index) && !packs_in_run_ ? std::optional(layer_.packed_bytes()) : std::nullopt;
    }
    void pack(std::size_t, const void* plain, void* packed) const override { layer_.pack(plain, packed); }
    void run(const Call& call) const override {
        if (backward_)
            run(slots_.operands<cpu::RecurrentGradientDirection>(call), call.workspace,
                [this](const auto&... all) { layer_.run_back(all...); });
        else
            run(slots_.operands<cpu::RecurrentDirection>(call), call.workspace,
                [this](const auto&... all) { layer_.run(all...); });
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

    RecurrentSlots slots_;
    bool backward_, packs_in_run_;
    cpu::RecurrentLayer layer_;
};

/// In fp32 only on request: its products of a few rows take longer than the native loops'.
template <Cell cell>
ProviderOp recurrent_row(std::vector<Precision> precisions, bool on_request_only) {
    return Computes<Recurrent<cell>>{.directions = {Direction::fwd, Direction::bwd},
                                     .precisions = std::move(precisions),
                                     .on_request_only = on_request_only,
                                     .make = [](const Recurrent<cell>& op, const Step& step, Precision precision) {
                                         return std::make_unique<RecurrentComputation>(cell, op.shape, step, precision);
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
class RecurrentWeightsComputation final : public Computation {
  public:
    RecurrentWeightsComputation(Cell cell, const RecurrentShape& shape, bool accumulates, const Step& step,
                                Precision precision)
        : slots_(step, precision), weights_(cell, shape, precision, accumulates) {}
    std::string implementation() const override { return weights_.implementation(); }
    std::size_t workspace_bytes() const override { return weights_.workspace_bytes(); }
    void run(const Call& call) const override {
        const auto operands = slots_.operands<cpu::RecurrentWeightDirection>(call);
        weights_.run(operands.forward, operands.reverse, call.workspace);
    }

  private:
    RecurrentWeightSlots slots_;
    cpu::RecurrentWeights weights_;
};

template <Cell cell>
ProviderOp recurrent_weights_row() {
    return Computes<Recurrent<cell>>{
        .directions = {Direction::wgrad}, .make = [](const Recurrent<cell>& op, const Step& step, Precision precision) {
            return std::make_unique<RecurrentWeightsComputation>(cell, op.shape, op.accumulates, step, precision);
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
