// Provider `native` on the CPU: kbench's own vector loops for the memory-bound steps, convolutions and recurrent
// layers.
#include <algorithm>
#include <iterator>

#include "bench/plan/bind.h"
#include "bench/plan/provider.h"
#include "bench/plan/providers/recurrent_operands.h"
#include "cpu/native/activation.h"
#include "cpu/native/adamw.h"
#include "cpu/native/attention_gradient.h"
#include "cpu/native/batchnorm.h"
#include "cpu/native/cached_attention.h"
#include "cpu/native/conv2d.h"
#include "cpu/native/cross_entropy.h"
#include "cpu/native/ctc.h"
#include "cpu/native/elementwise.h"
#include "cpu/native/embedding.h"
#include "cpu/native/global_norm.h"
#include "cpu/native/layernorm.h"
#include "cpu/native/prompt.h"
#include "cpu/native/recurrent.h"
#include "cpu/native/rmsnorm.h"
#include "cpu/native/rotary.h"
#include "cpu/native/sequence.h"
#include "cpu/native/softmax.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

template <OpStruct... T>
std::vector<ProviderOp> activation_rows(OpList<T...>) {
    return {leaving_no_intermediates(row("cpu::bias_activation",
                                         +[](DataType type, const T& op, In<"x"> x, In<"bias?"> bias, Out<"out"> out) {
                                             cpu::bias_activation(type, op.rows, op.width, x, bias, T::function, out);
                                         },
                                         {.absorbs = {{"bias"}}}))...,
            row("cpu::activation_gradient",
                +[](DataType type, const T& op, In<"x"> x, In<"dy"> dy, Out<"dx"> dx) {
                    cpu::activation_gradient(type, T::function, op.rows * op.width, x, dy, dx);
                },
                {.directions = {Direction::bwd}})...};
}

void bias_add(DataType type, const BiasAdd& op, In<"x"> x, In<"bias"> bias, Out<"out"> out) {
    cpu::bias_activation(type, op.rows, op.width, x, bias, std::nullopt, out);
}

void rms_norm(DataType type, const RmsNorm& op, In<"x"> x, In<"weight"> weight, Out<"out"> out) {
    cpu::rms_norm(type, op, x, weight, out);
}

void residual_add(DataType type, const ResidualAdd& op, In<"x"> x, In<"residual"> residual, Out<"out"> out) {
    cpu::residual_add(type, op.rows * op.width, x, residual, out);
}

void residual_add_gradient(DataType type, const ResidualAdd& op, In<"dy"> dy, In<"dy_residual"> dy_residual,
                           Out<"dx"> dx) {
    cpu::residual_add(type, op.rows * op.width, dy, dy_residual, dx);
}

void scale_mask(Precision precision, const ScaleMask& op, Out<"scores"> scores) {
    cpu::scale_mask(scores_type(op.upcast, precision), op, scores);
}

void softmax(Precision precision, const Softmax& op, In<"scores"> scores, Out<"probabilities"> probabilities) {
    cpu::softmax(scores_type(op.upcast, precision), storage_type(precision), op, scores, probabilities);
}

void time_mask(DataType type, const TimeMask& op, In<"x"> x, In<"lengths", std::int32_t> lengths, Out<"out"> out) {
    cpu::time_mask(type, op, x, lengths, out);
}

void time_mask_gradient(DataType type, const TimeMask& op, In<"dy"> dy, In<"lengths", std::int32_t> lengths,
                        Out<"dx"> dx) {
    cpu::time_mask(type, op, dy, lengths, dx);
}

void hardtanh(DataType type, const Hardtanh& op, In<"x"> x, Out<"out"> out) { cpu::hardtanh(type, op, x, out); }

void to_sequence(DataType type, const ToSequence& op, In<"x"> x, Out<"out"> out) { cpu::to_sequence(type, op, x, out); }

void to_sequence_gradient(DataType type, const ToSequence& op, In<"dy"> dy, Out<"dx"> dx) {
    cpu::to_sequence_gradient(type, op, dy, dx);
}

/// The norm of all operands but the last, which is where it goes.
void global_norm(DataType type, const GlobalNorm& op, std::span<void* const> gradients_and_norm) {
    cpu::global_norm(type, op, gradients_and_norm.first(gradients_and_norm.size() - 1), gradients_and_norm.back());
}

/// A pass over a recurrent layer's steps. Each weight_hh is packed once where weights stay as they are, otherwise in
/// every run.
class RecurrentComputation final : public Computation {
  public:
    RecurrentComputation(Cell cell, const RecurrentShape& shape, const Step& step, Precision precision)
        : cell_(cell),
          shape_(shape),
          type_(storage_type(precision)),
          backward_(step.direction == Direction::bwd),
          packs_in_run_(step.weights_change),
          slots_(step, precision) {}
    std::string implementation() const override { return backward_ ? "cpu::recurrent_gradient" : "cpu::recurrent"; }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        return slots_.is_weight(index) && !packs_in_run_ ? std::optional(weight_bytes()) : std::nullopt;
    }
    void pack(std::size_t, const void* plain, void* packed) const override {
        (backward_ ? cpu::recurrent_gradient_pack : cpu::recurrent_pack)(type_, cell_, shape_, plain, packed);
    }
    std::size_t workspace_bytes() const override {
        return (packs_in_run_ ? 2 * weight_bytes() : 0) +
               (backward_ ? cpu::recurrent_gradient_workspace : cpu::recurrent_workspace)(type_, cell_, shape_);
    }
    void run(const Call& call) const override {
        if (backward_)
            run(slots_.operands<cpu::RecurrentGradientDirection>(call), cpu::recurrent_gradient, call.workspace);
        else
            run(slots_.operands<cpu::RecurrentDirection>(call), cpu::recurrent, call.workspace);
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
    bool backward_, packs_in_run_;
    RecurrentSlots slots_;
};

template <Cell cell>
ProviderOp recurrent_row() {
    return Computes<Recurrent<cell>>{.directions = {Direction::fwd, Direction::bwd},
                                     .make = [](const Recurrent<cell>& op, const Step& step, Precision precision) {
                                         return std::make_unique<RecurrentComputation>(cell, op.shape, step, precision);
                                     }};
}

template <Cell cell>
ProviderOp recurrent_weights_row() {
    return Computes<Recurrent<cell>>{
        .directions = {Direction::wgrad}, .make = [](const Recurrent<cell>& op, const Step& step, Precision precision) {
            const DataType type = storage_type(precision);
            return make_computation(
                "cpu::recurrent_weights_gradient",
                [type, op, slots = RecurrentWeightSlots(step, precision)](const Call& call) {
                    const auto operands = slots.template operands<cpu::RecurrentWeightDirection>(call);
                    cpu::recurrent_weights_gradient(type, cell, op.shape, op.accumulates, operands.forward,
                                                    operands.reverse, call.workspace);
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

}  // namespace

std::unique_ptr<Provider> make_cpu_native(const ProviderContext&) {
    auto provider = std::make_unique<Provider>(Provider{
        .name = "native",
        .ops = {row("cpu::embedding", cpu::embedding),
                row("cpu::embedding_gradient", cpu::embedding_gradient,
                    {.directions = {Direction::bwd},
                     .workspace_bytes = [](DataType,
                                           const Embedding& op) { return cpu::embedding_gradient_workspace(op); }}),
                row("cpu::embedding_at", cpu::embedding_at),
                row("cpu::token_embedding", cpu::token_embedding),
                row("cpu::layer_norm", cpu::layer_norm, {.absorbs = {{"residual"}}}),
                row("cpu::layer_norm_gradient", cpu::layer_norm_gradient,
                    {.absorbs = {{"residual"}},
                     .directions = {Direction::bwd},
                     .workspace_bytes = cpu::layer_norm_gradient_workspace}),
                row("cpu::rms_norm", rms_norm),
                row("cpu::rms_norm_gradient", cpu::rms_norm_gradient,
                    {.directions = {Direction::bwd}, .workspace_bytes = cpu::rms_norm_gradient_workspace}),
                row("cpu::bias_activation", bias_add),
                row("cpu::bias_gradient", cpu::bias_gradient, {.directions = {Direction::bwd}}),
                row("cpu::residual_add", residual_add),
                row("cpu::residual_add", residual_add_gradient, {.directions = {Direction::bwd}}),
                row("cpu::scale_mask", scale_mask),
                row("cpu::softmax", softmax),
                row("cpu::cross_entropy", cpu::cross_entropy),
                row("cpu::cross_entropy_gradient", cpu::cross_entropy_gradient, {.directions = {Direction::bwd}}),
                row("cpu::ctc", cpu::ctc, {.workspace_bytes = cpu::ctc_workspace}),
                row("cpu::ctc_gradient", cpu::ctc_gradient,
                    {.directions = {Direction::bwd}, .workspace_bytes = cpu::ctc_gradient_workspace}),
                row("cpu::attention_gradient", cpu::attention_gradient,
                    {.directions = {Direction::bwd}, .workspace_bytes = cpu::attention_gradient_workspace}),
                row("cpu::cached_attention", cpu::cached_attention,
                    {.workspace_bytes = cpu::cached_attention_workspace}),
                row("cpu::fill_cache", cpu::fill_cache),
                row("cpu::last_token", cpu::last_token),
                row("cpu::qk_norm", cpu::qk_norm),
                row("cpu::rotary_embedding", cpu::rotary_embedding),
                row("cpu::swiglu", cpu::swiglu),
                row("cpu::conv2d", cpu::conv2d, {.workspace_bytes = cpu::conv2d_workspace}),
                row("cpu::conv2d_dgrad", cpu::conv2d_dgrad,
                    {.directions = {Direction::dgrad}, .workspace_bytes = cpu::conv2d_dgrad_workspace}),
                row("cpu::conv2d_wgrad", cpu::conv2d_wgrad,
                    {.directions = {Direction::wgrad}, .workspace_bytes = cpu::conv2d_wgrad_workspace}),
                only_where(false, row("cpu::batch_norm", cpu::batch_norm)),
                only_where(true, row("cpu::batch_norm_in_training", cpu::batch_norm_in_training,
                                     {.workspace_bytes = cpu::batch_norm_workspace})),
                row("cpu::batch_norm_gradient", cpu::batch_norm_gradient,
                    {.directions = {Direction::bwd}, .workspace_bytes = cpu::batch_norm_workspace}),
                row("cpu::hardtanh", hardtanh),
                row("cpu::hardtanh_gradient", cpu::hardtanh_gradient, {.directions = {Direction::bwd}}),
                row("cpu::time_mask", time_mask),
                row("cpu::time_mask", time_mask_gradient, {.directions = {Direction::bwd}}),
                row("cpu::to_sequence", to_sequence),
                row("cpu::to_sequence_gradient", to_sequence_gradient, {.directions = {Direction::bwd}}),
                recurrent_row<Cell::lstm>(),
                recurrent_row<Cell::gru>(),
                recurrent_row<Cell::rnn>(),
                recurrent_weights_row<Cell::lstm>(),
                recurrent_weights_row<Cell::gru>(),
                recurrent_weights_row<Cell::rnn>(),
                row("cpu::global_norm", global_norm),
                row("cpu::adamw", cpu::adamw)},
        .lacks = no_tf32});
    std::ranges::move(activation_rows(Activations()), std::back_inserter(provider->ops));
    return provider;
}

}  // namespace kbench
