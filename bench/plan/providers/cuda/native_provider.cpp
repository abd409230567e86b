// Provider `native` on the GPU: kbench's own kernels.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "bench/plan/bind.h"
#include "bench/plan/provider.h"
#include "bench/plan/providers/cuda/convolution_provider.h"
#include "bench/plan/providers/cuda/ladder_provider.h"
#include "bench/plan/providers/cuda/persistent_provider.h"
#include "bench/plan/providers/cuda/recurrent_provider.h"
#include "kbench/error.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cached.h"
#include "kernels/bias_backward.h"
#include "kernels/cross_entropy.h"
#include "kernels/ctc.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/global_norm.h"
#include "kernels/norm/batchnorm.h"
#include "kernels/norm/layernorm.h"
#include "kernels/norm/norm_backward.h"
#include "kernels/norm/rmsnorm.h"
#include "kernels/prompt.h"
#include "kernels/rotary.h"
#include "kernels/sequence.h"
#include "kernels/softmax.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

template <std::int64_t limit, class Norm>
std::string wider_than(const Norm& op, const Step&, Precision) {
    return op.width <= limit ? "" : fmt::format("width {} is over its limit of {}", op.width, limit);
}

template <OpStruct... T>
std::vector<ProviderOp> activation_rows(OpList<T...>) {
    return {leaving_no_intermediates(
                row("bias_activation",
                    +[](DataType type, const T& op, In<"x"> x, In<"bias?"> bias, Out<"out"> out, cudaStream_t stream) {
                        cuda::bias_activation_forward(type, T::function, op.rows, op.width, x, bias, out, stream);
                    },
                    {.absorbs = {{"bias"}}}))...,
            row("activation_backward",
                +[](DataType type, const T& op, In<"x"> x, In<"dy"> dy, Out<"dx"> dx, cudaStream_t stream) {
                    cuda::activation_backward(type, T::function, op.rows * op.width, x, dy, dx, stream);
                },
                {.directions = {Direction::bwd}})...};
}

void residual_add_backward(DataType type, const ResidualAdd& op, In<"dy"> dy, In<"dy_residual"> dy_residual,
                           Out<"dx"> dx, cudaStream_t stream) {
    cuda::residual_add_forward(type, op, dy.data(), dy_residual.data(), dx.data(), stream);
}

void scale_mask(Precision precision, const ScaleMask& op, Out<"scores"> scores, cudaStream_t stream) {
    cuda::scale_mask_forward(scores_type(op.upcast, precision), op, scores, stream);
}

void softmax(Precision precision, const Softmax& op, In<"scores"> scores, Out<"probabilities"> probabilities,
             cudaStream_t stream) {
    cuda::softmax_forward(scores_type(op.upcast, precision), storage_type(precision), op, scores, probabilities,
                          stream);
}

/// The norm of all operands but the last, which is where it goes.
void global_norm(DataType type, const GlobalNorm& op, std::span<void* const> gradients_and_norm, void* workspace,
                 cudaStream_t stream) {
    cuda::global_norm(type, op, gradients_and_norm.first(gradients_and_norm.size() - 1), gradients_and_norm.back(),
                      workspace, stream);
}

std::string no_such_batch_norm(const BatchNorm& op, const Step& step, Precision) {
    if (op.training) return "normalises with running statistics only";
    return step.absorbs<ResidualAdd>() && op.channels > 0 ? "adds a residual only where channels are columns" : "";
}

std::string no_such_training(const BatchNorm& op, const Step&, Precision) {
    return op.training ? "" : "normalises with the batch's statistics only";
}

void time_mask_backward(DataType type, const TimeMask& op, In<"dy"> dy, In<"lengths", std::int32_t> lengths,
                        Out<"dx"> dx, cudaStream_t stream) {
    cuda::time_mask_forward(type, op, dy.data(), lengths, dx.data(), stream);
}

cuda::AttentionArguments attention_arguments(const Attention& op, Precision precision) {
    return {nullptr, nullptr, op.shape.batch, op.shape.heads, op.shape.seq, op.shape.head_size, op.scale, precision};
}

std::string no_such_attention(const Attention& op, const Step&, Precision precision) {
    try {
        cuda::attention_kernel_name(attention_arguments(op, precision));
    } catch (const Unsupported& refusal) {
        return refusal.what();
    }
    return "";
}

class AttentionForward final : public Computation {
  public:
    AttentionForward(const Step& step, Precision precision, std::int64_t tile_rows = 0)
        : qkv_(step, precision, "qkv"),
          lse_(step, precision, "lse?"),
          out_(step, precision, "out"),
          arguments_(attention_arguments(step.as<Attention>(), precision)) {
        arguments_.tile_rows = tile_rows;
    }
    std::string implementation() const override { return cuda::attention_kernel_name(arguments_); }
    void run(const Call& call) const override {
        cuda::AttentionArguments arguments = arguments_;
        arguments.qkv = qkv_.of(call);
        arguments.lse = lse_.of(call);
        arguments.out = out_.of(call);
        cuda::attention_forward(arguments, static_cast<cudaStream_t>(call.stream));
    }
    /// Longer sequences have rows enough for another tile: they keep this one.
    std::unique_ptr<Computation> resized(const Step& grown, Precision precision) const override {
        return std::make_unique<AttentionForward>(grown, precision,
                                                  arguments_.batch * arguments_.heads * arguments_.seq);
    }

  private:
    Slot qkv_, lse_, out_;
    cuda::AttentionArguments arguments_;
};

std::unique_ptr<Computation> attention(const Attention&, const Step& step, Precision precision) {
    return std::make_unique<AttentionForward>(step, precision);
}

cuda::AttentionGradientArguments gradient_arguments(const Attention& op, Precision precision) {
    return {nullptr,  nullptr,        nullptr,        nullptr,      nullptr,
            nullptr,  op.shape.batch, op.shape.heads, op.shape.seq, op.shape.head_size,
            op.scale, precision};
}

void attention_backward(Precision precision, const Attention& op, In<"qkv"> qkv, In<"out"> out, In<"dout"> dout,
                        In<"lse"> lse, Out<"dqkv"> dqkv, void* workspace, cudaStream_t stream) {
    cuda::AttentionGradientArguments call = gradient_arguments(op, precision);
    call.qkv = qkv;
    call.out = out;
    call.dout = dout;
    call.lse = lse;
    call.dqkv = dqkv;
    call.workspace = workspace;
    cuda::attention_backward(call, stream);
}

std::string no_such_attention_gradient(const Attention& op, const Step&, Precision precision) {
    try {
        cuda::attention_gradient_kernel_name(gradient_arguments(op, precision));
    } catch (const Unsupported& refusal) {
        return refusal.what();
    }
    return "";
}

std::unique_ptr<Computation> attention_gradient(const Attention& op, const Step& step, Precision precision) {
    const cuda::AttentionGradientArguments arguments = gradient_arguments(op, precision);
    return bound(cuda::attention_gradient_kernel_name(arguments), attention_backward, step, precision,
                 cuda::attention_gradient_workspace(arguments));
}

std::string wider_than_rotary(const RotaryEmbedding& op, const Step&, Precision) {
    constexpr std::int64_t limit = cuda::rotary_embedding_max_head_size;
    return op.head_size <= limit ? "" : fmt::format("head_size {} is over its limit of {}", op.head_size, limit);
}

std::string wider_than_cached(const CachedAttention& op, const Step&, Precision) {
    constexpr std::int64_t limit = cuda::cached_attention_max_head_size;
    return op.head_size <= limit ? "" : fmt::format("head_size {} is over its limit of {}", op.head_size, limit);
}

}  // namespace

std::unique_ptr<Provider> make_cuda_native(const ProviderContext& context) {
    auto provider = std::make_unique<Provider>(Provider{
        .name = "native",
        .ops = {row("embedding", cuda::embedding_forward),
                row("embedding_gradient", cuda::embedding_gradient,
                    {.directions = {Direction::bwd}, .workspace_bytes = cuda::embedding_gradient_workspace}),
                row("embedding_at", cuda::embedding_at),
                row("token_embedding", cuda::token_embedding),
                row("layer_norm", cuda::layer_norm_forward,
                    {.absorbs = {{"residual"}, {"bias", "residual"}},
                     .why_not = wider_than<cuda::layer_norm_max_width, LayerNorm>}),
                row("layer_norm_backward", cuda::layer_norm_backward,
                    {.absorbs = {{"residual"}},
                     .directions = {Direction::bwd},
                     .workspace_bytes = cuda::layer_norm_backward_workspace_bytes,
                     .why_not = wider_than<cuda::norm_backward_max_width, LayerNorm>}),
                row("rms_norm", cuda::rms_norm_forward, {.why_not = wider_than<cuda::rms_norm_max_width, RmsNorm>}),
                row("rms_norm_backward", cuda::rms_norm_backward,
                    {.directions = {Direction::bwd},
                     .workspace_bytes = cuda::rms_norm_backward_workspace_bytes,
                     .why_not = wider_than<cuda::norm_backward_max_width, RmsNorm>}),
                ladder_gemm(cuda::top_rung),
                native_conv2d(),
                native_conv2d_dgrad(),
                native_conv2d_wgrad(),
                row("bias_add", cuda::bias_add_forward),
                row("bias_backward", cuda::bias_backward,
                    {.directions = {Direction::bwd}, .workspace_bytes = cuda::bias_backward_workspace_bytes}),
                row("residual_add", cuda::residual_add_forward),
                row("residual_add", residual_add_backward, {.directions = {Direction::bwd}}),
                Computes<Attention>{.why_not = no_such_attention, .make = attention},
                Computes<Attention>{
                    .directions = {Direction::bwd}, .why_not = no_such_attention_gradient, .make = attention_gradient},
                row("cached_attention", cuda::cached_attention,
                    {.workspace_bytes = cuda::cached_attention_workspace, .why_not = wider_than_cached}),
                row("fill_cache", cuda::fill_cache),
                row("last_token", cuda::last_token),
                row("qk_norm", cuda::qk_norm),
                row("rotary_embedding", cuda::rotary_embedding, {.why_not = wider_than_rotary}),
                row("swiglu", cuda::swiglu_forward),
                row("scale_mask", scale_mask),
                row("softmax", softmax),
                leaving_no_intermediates(row("batch_norm", cuda::batch_norm_forward,
                                             {.absorbs = {{"residual"}}, .why_not = no_such_batch_norm})),
                row("hardtanh", cuda::hardtanh_forward),
                row("time_mask", cuda::time_mask_forward),
                row("to_sequence", cuda::to_sequence_forward),
                row("batch_norm_in_training", cuda::batch_norm_in_training,
                    {.workspace_bytes = cuda::batch_norm_workspace_bytes, .why_not = no_such_training}),
                row("batch_norm_backward", cuda::batch_norm_backward,
                    {.directions = {Direction::bwd}, .workspace_bytes = cuda::batch_norm_workspace_bytes}),
                row("hardtanh_backward", cuda::hardtanh_backward, {.directions = {Direction::bwd}}),
                row("time_mask", time_mask_backward, {.directions = {Direction::bwd}}),
                row("to_sequence_backward", cuda::to_sequence_backward, {.directions = {Direction::bwd}}),
                persistent_lstm_row(context),
                row("cross_entropy", cuda::cross_entropy_forward),
                row("cross_entropy_gradient", cuda::cross_entropy_gradient, {.directions = {Direction::bwd}}),
                row("ctc", cuda::ctc_forward, {.workspace_bytes = cuda::ctc_forward_workspace_bytes}),
                row("ctc_gradient", cuda::ctc_gradient,
                    {.directions = {Direction::bwd}, .workspace_bytes = cuda::ctc_gradient_workspace_bytes}),
                row("global_norm", global_norm, {.workspace_bytes = cuda::global_norm_workspace}),
                row("adamw", cuda::adamw)}});
    std::ranges::move(activation_rows(Activations()), std::back_inserter(provider->ops));
    std::ranges::move(recurrent_rows(context), std::back_inserter(provider->ops));
    return provider;
}

}  // namespace kbench
