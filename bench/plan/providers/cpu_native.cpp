// Provider `native` on the CPU: kbench's own vector loops for the memory-bound steps, convolutions and recurrent
// layers.
#include <algorithm>
#include <iterator>

#include "bench/plan/provider.h"
#include "bench/plan/providers/recurrent_operands.h"
#include "cpu/native/activation.h"
#include "cpu/native/adamw.h"
#include "cpu/native/attention_gradient.h"
#include "cpu/native/batchnorm.h"
#include "cpu/native/conv2d.h"
#include "cpu/native/cross_entropy.h"
#include "cpu/native/ctc.h"
#include "cpu/native/elementwise.h"
#include "cpu/native/embedding.h"
#include "cpu/native/global_norm.h"
#include "cpu/native/layernorm.h"
#include "cpu/native/recurrent.h"
#include "cpu/native/rmsnorm.h"
#include "cpu/native/sequence.h"
#include "cpu/native/softmax.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

/// A row whose loop needs no preparation: `run(op, step, precision, operands)`.
template <OpStruct T, class Run>
ProviderOp row(const char* implementation, Run run, std::vector<Absorbed> absorbs = {},
               Direction direction = Direction::fwd) {
    return Computes<T>{.directions = {direction},
                       .absorbs = std::move(absorbs),
                       .make = [=](const T& op, const Step& step, Precision precision) {
                           return make_computation(
                               implementation, [=](OperandCursor in, void*, void*) { run(op, step, precision, in); });
                       }};
}

/// A row of a loop that has a workspace: `workspace_bytes(type, op)`, `run(op, step, type, operands, workspace)`.
template <OpStruct T, class Run>
ProviderOp workspace_row(const char* implementation, std::size_t (*workspace_bytes)(DataType, const T&), Run run,
                         std::vector<Absorbed> absorbs = {}, Direction direction = Direction::fwd) {
    return Computes<T>{.directions = {direction},
                       .absorbs = std::move(absorbs),
                       .make = [=](const T& op, const Step& step, Precision precision) {
                           const DataType type = storage_type(precision);
                           return make_computation(
                               implementation,
                               [=](OperandCursor in, void* workspace, void*) { run(op, step, type, in, workspace); }, 1,
                               workspace_bytes(type, op));
                       }};
}

template <OpStruct T, class Run>
ProviderOp gradient_row(const char* implementation, std::size_t (*workspace_bytes)(DataType, const T&), Run run,
                        std::vector<Absorbed> absorbs = {}) {
    return workspace_row(implementation, workspace_bytes, run, std::move(absorbs), Direction::bwd);
}

void embedding(const Embedding& op, const Step&, Precision precision, OperandCursor in) {
    const auto* tokens = in.next<const std::int32_t>();
    const void* wte = in.next();
    const void* wpe = in.next();
    cpu::embedding(storage_type(precision), op, tokens, wte, wpe, in.next());
}

void layer_norm(const LayerNorm& op, const Step& step, Precision precision, OperandCursor in) {
    const void* x = in.next();
    const void* residual = in.next_if(step.absorbs<ResidualAdd>());
    const void* weight = in.next();
    const void* bias = in.next();
    void* sum = in.next_if(step.keeps_intermediates());
    cpu::layer_norm(storage_type(precision), op, x, residual, weight, bias, sum, in.next());
}

void layer_norm_gradient(const LayerNorm& op, const Step& step, DataType type, OperandCursor in, void* workspace) {
    const void* x = in.next();
    const void* dy = in.next();
    const void* weight = in.next();
    void* dw = in.next_if(op.accumulates);
    void* db = in.next_if(op.accumulates);
    const void* past = in.next_if(step.absorbs<ResidualAdd>());
    void* alone = in.next_if(past == nullptr);
    if (!op.accumulates) dw = in.next();
    if (!op.accumulates) db = in.next();
    void* sum = in.next_if(past != nullptr);
    cpu::layer_norm_gradient(type, op, x, dy, weight, past, past ? sum : alone, dw, db, workspace);
}

void rms_norm_gradient(const RmsNorm& op, const Step&, DataType type, OperandCursor in, void* workspace) {
    const void* x = in.next();
    const void* dy = in.next();
    const void* weight = in.next();
    void* sum = in.next_if(op.accumulates);
    void* dx = in.next();
    cpu::rms_norm_gradient(type, op, x, dy, weight, dx, sum ? sum : in.next(), workspace);
}

void attention_gradient(const Attention& op, const Step&, DataType type, OperandCursor in, void* workspace) {
    const void* qkv = in.next();
    const void* out = in.next();
    const void* dout = in.next();
    const void* lse = in.next();
    cpu::attention_gradient(type, op, qkv, out, dout, lse, in.next(), workspace);
}

class EmbeddingGradient final : public Computation {
  public:
    EmbeddingGradient(const Embedding& op, DataType type) : op_(op), type_(type) {}
    std::string implementation() const override { return "cpu::embedding_gradient"; }
    std::size_t workspace_bytes() const override { return cpu::embedding_gradient_workspace(op_); }
    void run(std::span<void* const> p, void* workspace, void*) const override {
        cpu::embedding_gradient(type_, op_, static_cast<const std::int32_t*>(p[0]), p[1], p[2], p[3], workspace);
    }

  private:
    Embedding op_;
    DataType type_;
};

void rms_norm(const RmsNorm& op, const Step&, Precision precision, OperandCursor in) {
    const void* x = in.next();
    const void* weight = in.next();
    cpu::rms_norm(storage_type(precision), op, x, weight, in.next());
}

void bias_add(const BiasAdd& op, const Step&, Precision precision, OperandCursor in) {
    const void* x = in.next();
    const void* bias = in.next();
    cpu::bias_activation(storage_type(precision), op.rows, op.width, x, bias, std::nullopt, in.next());
}

template <Activation f>
void activation(const ActivationOp<f>& op, const Step& step, Precision precision, OperandCursor in) {
    const void* x = in.next();
    const void* bias = in.next_if(step.absorbs<BiasAdd>());
    cpu::bias_activation(storage_type(precision), op.rows, op.width, x, bias, f, in.next());
}

void bias_gradient(const BiasAdd& op, const Step&, Precision precision, OperandCursor in) {
    const void* dy = in.next();
    cpu::bias_gradient(storage_type(precision), op, dy, in.next());
}

template <Activation f>
void activation_gradient(const ActivationOp<f>& op, const Step&, Precision precision, OperandCursor in) {
    const void* dy = in.next();
    const void* x = in.next();
    cpu::activation_gradient(storage_type(precision), f, op.rows * op.width, x, dy, in.next());
}

template <OpStruct... T>
std::vector<ProviderOp> activation_rows(OpList<T...>) {
    return {leaving_no_intermediates(row<T>("cpu::bias_activation", activation<T::function>, {{"bias"}}))...,
            row<T>("cpu::activation_gradient", activation_gradient<T::function>, {}, Direction::bwd)...};
}

void residual_add(const ResidualAdd& op, const Step&, Precision precision, OperandCursor in) {
    const void* x = in.next();
    const void* residual = in.next();
    cpu::residual_add(storage_type(precision), op.rows * op.width, x, residual, in.next());
}

void scale_mask(const ScaleMask& op, const Step&, Precision precision, OperandCursor in) {
    cpu::scale_mask(scores_type(op.upcast, precision), op, in.next());
}

void softmax(const Softmax& op, const Step&, Precision precision, OperandCursor in) {
    const void* scores = in.next();
    cpu::softmax(scores_type(op.upcast, precision), storage_type(precision), op, scores, in.next());
}

/// The distance between rows of logits, in elements.
std::int64_t stride_of(const CrossEntropy& op, const Step& step) {
    return step.padded_columns > 0 ? step.padded_columns : op.vocab;
}

void cross_entropy(const CrossEntropy& op, const Step& step, Precision precision, OperandCursor in) {
    const void* logits = in.next();
    const auto* tokens = in.next<const std::int32_t>();
    cpu::cross_entropy(storage_type(precision), op, stride_of(op, step), logits, tokens, in.next());
}

void cross_entropy_gradient(const CrossEntropy& op, const Step& step, Precision precision, OperandCursor in) {
    void* logits = in.next();
    const auto* tokens = in.next<const std::int32_t>();
    const void* loss_scale = in.next();
    cpu::cross_entropy_gradient(storage_type(precision), op, stride_of(op, step), logits, tokens, loss_scale,
                                in.next());
}

/// The distance between rows of logits, in elements.
std::int64_t stride_of(const Ctc& op, const Step& step) {
    return step.padded_columns > 0 ? step.padded_columns : op.labels;
}

void ctc(const Ctc& op, const Step& step, DataType type, OperandCursor in, void* workspace) {
    const void* logits = in.next();
    const auto* lengths = in.next<const std::int32_t>();
    const auto* targets = in.next<const std::int32_t>();
    const auto* target_lengths = in.next<const std::int32_t>();
    cpu::ctc(type, op, stride_of(op, step), logits, lengths, targets, target_lengths, in.next(), workspace);
}

void ctc_gradient(const Ctc& op, const Step& step, DataType type, OperandCursor in, void* workspace) {
    void* logits = in.next();
    const auto* lengths = in.next<const std::int32_t>();
    const auto* targets = in.next<const std::int32_t>();
    const auto* target_lengths = in.next<const std::int32_t>();
    const void* loss_scale = in.next();
    cpu::ctc_gradient(type, op, stride_of(op, step), logits, lengths, targets, target_lengths, loss_scale, in.next(),
                      workspace);
}

void conv2d(const Conv2d& op, const Step&, DataType type, OperandCursor in, void* workspace) {
    const void* x = in.next();
    const void* weight = in.next();
    const void* bias = in.next_if(op.bias);
    cpu::conv2d(type, op, x, weight, bias, in.next(), workspace);
}

void conv2d_dgrad(const Conv2d& op, const Step&, DataType type, OperandCursor in, void* workspace) {
    const void* dy = in.next();
    const void* weight = in.next();
    cpu::conv2d_dgrad(type, op, dy, weight, in.next(), workspace);
}

void conv2d_wgrad(const Conv2d& op, const Step&, DataType type, OperandCursor in, void* workspace) {
    const void* x = in.next();
    const void* dy = in.next();
    void* dw = in.next();
    cpu::conv2d_wgrad(type, op, x, dy, dw, in.next_if(op.bias), workspace);
}

void batch_norm(const BatchNorm& op, const Step&, Precision precision, OperandCursor in) {
    const void* x = in.next();
    const void* weight = in.next();
    const void* bias = in.next();
    const void* mean = in.next();
    const void* variance = in.next();
    cpu::batch_norm(storage_type(precision), op, x, weight, bias, mean, variance, in.next());
}

void batch_norm_in_training(const BatchNorm& op, const Step&, DataType type, OperandCursor in, void* workspace) {
    const void* x = in.next();
    const void* weight = in.next();
    const void* bias = in.next();
    void* running_mean = in.next();
    void* running_var = in.next();
    void* mean = in.next();
    void* rstd = in.next();
    cpu::batch_norm_in_training(type, op, x, weight, bias, running_mean, running_var, mean, rstd, in.next(), workspace);
}

void batch_norm_gradient(const BatchNorm& op, const Step&, DataType type, OperandCursor in, void* workspace) {
    const void* x = in.next();
    const void* dy = in.next();
    const void* weight = in.next();
    const void* mean = in.next();
    const void* rstd = in.next();
    void* dx = in.next_if(!op.accumulates);
    void* dw = in.next();
    void* db = in.next();
    cpu::batch_norm_gradient(type, op, x, dy, weight, mean, rstd, dx ? dx : in.next(), dw, db, workspace);
}

void hardtanh(const Hardtanh& op, const Step&, Precision precision, OperandCursor in) {
    const void* x = in.next();
    cpu::hardtanh(storage_type(precision), op, x, in.next());
}

void hardtanh_gradient(const Hardtanh& op, const Step&, Precision precision, OperandCursor in) {
    const void* y = in.next();
    const void* dy = in.next();
    cpu::hardtanh_gradient(storage_type(precision), op, y, dy, in.next());
}

void time_mask(const TimeMask& op, const Step&, Precision precision, OperandCursor in) {
    const void* x = in.next();
    const auto* lengths = in.next<const std::int32_t>();
    cpu::time_mask(storage_type(precision), op, x, lengths, in.next());
}

void to_sequence(const ToSequence& op, const Step&, Precision precision, OperandCursor in) {
    const void* x = in.next();
    cpu::to_sequence(storage_type(precision), op, x, in.next());
}

void to_sequence_gradient(const ToSequence& op, const Step&, Precision precision, OperandCursor in) {
    const void* dy = in.next();
    cpu::to_sequence_gradient(storage_type(precision), op, dy, in.next());
}

/// A pass over a recurrent layer's steps. Each weight_hh, operand 2 or 3 of either direction, is packed once where
/// weights stay as they are, otherwise in every run.
class RecurrentComputation final : public Computation {
  public:
    RecurrentComputation(Cell cell, const RecurrentShape& shape, DataType type, const Step& step, bool saves)
        : cell_(cell),
          shape_(shape),
          type_(type),
          backward_(step.direction == Direction::bwd),
          packs_in_run_(step.weights_change),
          saves_(saves) {}
    std::string implementation() const override { return backward_ ? "cpu::recurrent_gradient" : "cpu::recurrent"; }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        const bool is_weight = index == 2 || index == 3;
        return is_weight && !packs_in_run_ ? std::optional(weight_bytes()) : std::nullopt;
    }
    void pack(std::size_t, const void* plain, void* packed) const override {
        (backward_ ? cpu::recurrent_gradient_pack : cpu::recurrent_pack)(type_, cell_, shape_, plain, packed);
    }
    std::size_t workspace_bytes() const override {
        return (packs_in_run_ ? 2 * weight_bytes() : 0) +
               (backward_ ? cpu::recurrent_gradient_workspace : cpu::recurrent_workspace)(type_, cell_, shape_);
    }
    void run(std::span<void* const> pointers, void* workspace, void*) const override {
        const OperandCursor in(pointers);
        if (backward_)
            run(RecurrentGradientOperands(cell_, in), cpu::recurrent_gradient, workspace);
        else
            run(RecurrentOperands(cell_, saves_, in), cpu::recurrent, workspace);
    }

  private:
    std::size_t weight_bytes() const {
        return (backward_ ? cpu::recurrent_gradient_packed_bytes : cpu::recurrent_packed_bytes)(type_, cell_, shape_);
    }
    template <class Operands, class Run>
    void run(Operands operands, Run of_layer, void* workspace) const {
        char* memory = static_cast<char*>(workspace);
        if (packs_in_run_)
            for (auto* direction : {&operands.forward, &operands.reverse}) {
                pack(0, direction->weight_hh, memory);
                direction->weight_hh = std::exchange(memory, memory + weight_bytes());
            }
        of_layer(type_, cell_, shape_, operands.forward, operands.reverse, operands.lengths, memory);
    }

    Cell cell_;
    RecurrentShape shape_;
    DataType type_;
    bool backward_, packs_in_run_, saves_;
};

template <Cell cell>
ProviderOp recurrent_row() {
    return Computes<Recurrent<cell>>{.directions = {Direction::fwd, Direction::bwd},
                                     .make = [](const Recurrent<cell>& op, const Step& step, Precision precision) {
                                         return std::make_unique<RecurrentComputation>(
                                             cell, op.shape, storage_type(precision), step, op.saves);
                                     }};
}

template <Cell cell>
ProviderOp recurrent_weights_row() {
    return Computes<Recurrent<cell>>{
        .directions = {Direction::wgrad}, .make = [](const Recurrent<cell>& op, const Step&, Precision precision) {
            const DataType type = storage_type(precision);
            return make_computation(
                "cpu::recurrent_weights_gradient",
                [type, op](OperandCursor in, void* workspace, void*) {
                    const RecurrentWeightOperands operands(cell, in);
                    cpu::recurrent_weights_gradient(type, cell, op.shape, op.accumulates, operands.forward,
                                                    operands.reverse, workspace);
                },
                1, cpu::recurrent_weights_workspace(type, cell, op.shape));
        }};
}

/// A row with `training`, or without.
ProviderOp only_where(bool training, ProviderOp row) {
    row.why_not = [training](const Step& step, Precision) -> std::string {
        if (step.as<BatchNorm>().training == training) return "";
        return training ? "normalises with the batch's statistics only" : "normalises with running statistics only";
    };
    return row;
}

class GlobalNormStep final : public Computation {
  public:
    GlobalNormStep(const GlobalNorm& op, DataType type) : op_(op), type_(type) {}
    std::string implementation() const override { return "cpu::global_norm"; }
    void run(std::span<void* const> p, void*, void*) const override {
        cpu::global_norm(type_, op_, p.first(p.size() - 1), p.back());
    }

  private:
    GlobalNorm op_;
    DataType type_;
};

class AdamWStep final : public Computation {
  public:
    AdamWStep(const AdamW& op, DataType type) : op_(op), type_(type) {}
    std::string implementation() const override { return "cpu::adamw"; }
    void run(std::span<void* const> p, void*, void*) const override { cpu::adamw(type_, op_, p); }

  private:
    AdamW op_;
    DataType type_;
};

}  // namespace

std::unique_ptr<Provider> make_cpu_native(const ProviderContext&) {
    auto provider = std::make_unique<Provider>(Provider{
        .name = "native",
        .ops = {row<Embedding>("cpu::embedding", embedding),
                row<LayerNorm>("cpu::layer_norm", layer_norm, {{"residual"}}),
                row<RmsNorm>("cpu::rms_norm", rms_norm),
                row<BiasAdd>("cpu::bias_activation", bias_add),
                gradient_row("cpu::layer_norm_gradient", cpu::layer_norm_gradient_workspace, layer_norm_gradient,
                             {{"residual"}}),
                gradient_row("cpu::rms_norm_gradient", cpu::rms_norm_gradient_workspace, rms_norm_gradient),
                Computes<Embedding>{.directions = {Direction::bwd},
                                    .make =
                                        [](const Embedding& op, const Step&, Precision precision) {
                                            return std::make_unique<EmbeddingGradient>(op, storage_type(precision));
                                        }},
                row<BiasAdd>("cpu::bias_gradient", bias_gradient, {}, Direction::bwd),
                row<ResidualAdd>("cpu::residual_add", residual_add),
                row<ResidualAdd>("cpu::residual_add", residual_add, {}, Direction::bwd),
                row<ScaleMask>("cpu::scale_mask", scale_mask),
                row<Softmax>("cpu::softmax", softmax),
                row<CrossEntropy>("cpu::cross_entropy", cross_entropy),
                row<CrossEntropy>("cpu::cross_entropy_gradient", cross_entropy_gradient, {}, Direction::bwd),
                workspace_row("cpu::ctc", cpu::ctc_workspace, ctc),
                gradient_row("cpu::ctc_gradient", cpu::ctc_gradient_workspace, ctc_gradient),
                gradient_row<Attention>("cpu::attention_gradient", cpu::attention_gradient_workspace,
                                        attention_gradient),
                workspace_row("cpu::conv2d", cpu::conv2d_workspace, conv2d),
                only_where(false, row<BatchNorm>("cpu::batch_norm", batch_norm)),
                only_where(true, workspace_row("cpu::batch_norm_in_training", cpu::batch_norm_workspace,
                                               batch_norm_in_training)),
                gradient_row("cpu::batch_norm_gradient", cpu::batch_norm_workspace, batch_norm_gradient),
                workspace_row("cpu::conv2d_dgrad", cpu::conv2d_dgrad_workspace, conv2d_dgrad, {}, Direction::dgrad),
                workspace_row("cpu::conv2d_wgrad", cpu::conv2d_wgrad_workspace, conv2d_wgrad, {}, Direction::wgrad),
                row<Hardtanh>("cpu::hardtanh", hardtanh),
                row<Hardtanh>("cpu::hardtanh_gradient", hardtanh_gradient, {}, Direction::bwd),
                row<TimeMask>("cpu::time_mask", time_mask),
                row<TimeMask>("cpu::time_mask", time_mask, {}, Direction::bwd),
                row<ToSequence>("cpu::to_sequence", to_sequence),
                row<ToSequence>("cpu::to_sequence_gradient", to_sequence_gradient, {}, Direction::bwd),
                recurrent_row<Cell::lstm>(),
                recurrent_row<Cell::gru>(),
                recurrent_row<Cell::rnn>(),
                recurrent_weights_row<Cell::lstm>(),
                recurrent_weights_row<Cell::gru>(),
                recurrent_weights_row<Cell::rnn>(),
                Computes<GlobalNorm>{.make =
                                         [](const GlobalNorm& op, const Step&, Precision precision) {
                                             return std::make_unique<GlobalNormStep>(op, storage_type(precision));
                                         }},
                Computes<AdamW>{.make =
                                    [](const AdamW& op, const Step&, Precision precision) {
                                        return std::make_unique<AdamWStep>(op, storage_type(precision));
                                    }}},
        .lacks = no_tf32});
    std::ranges::move(activation_rows(Activations()), std::back_inserter(provider->ops));
    return provider;
}

}  // namespace kbench
