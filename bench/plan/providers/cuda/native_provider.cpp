// Provider `native` on the GPU: kbench's own kernels.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "bench/plan/provider.h"
#include "bench/plan/providers/cuda/convolution_provider.h"
#include "bench/plan/providers/cuda/ctc_provider.h"
#include "bench/plan/providers/cuda/ladder_provider.h"
#include "bench/plan/providers/cuda/persistent_provider.h"
#include "bench/plan/providers/cuda/recurrent_provider.h"
#include "bench/plan/providers/cuda/sequence_provider.h"
#include "kbench/error.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/attention/attention.h"
#include "kernels/bias_backward.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/global_norm.h"
#include "kernels/norm/layernorm.h"
#include "kernels/norm/norm_backward.h"
#include "kernels/norm/rmsnorm.h"
#include "kernels/softmax.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

/// A row whose kernel needs no preparation: `run(op, step, precision, operands, stream)`.
template <OpStruct T, class Run>
ProviderOp row(const char* implementation, Run run, std::vector<Absorbed> absorbs = {},
               std::string (*why_not)(const T&, const Step&, Precision) = nullptr,
               Direction direction = Direction::fwd) {
    return Computes<T>{.directions = {direction},
                       .absorbs = std::move(absorbs),
                       .why_not = why_not,
                       .make = [=](const T& op, const Step& step, Precision precision) {
                           return make_computation(implementation, [=](OperandCursor in, void*, void* stream) {
                               run(op, step, precision, in, static_cast<cudaStream_t>(stream));
                           });
                       }};
}

/// A row of a backward whose kernels have a workspace: `workspace_bytes(type, rows, width)`, `run(op, step, type,
/// operands, workspace, stream)`.
template <OpStruct T, class Run>
ProviderOp backward_row(const char* implementation,
                        std::size_t (*workspace_bytes)(DataType, std::int64_t, std::int64_t), Run run,
                        std::vector<Absorbed> absorbs = {},
                        std::string (*why_not)(const T&, const Step&, Precision) = nullptr) {
    return Computes<T>{.directions = {Direction::bwd},
                       .absorbs = std::move(absorbs),
                       .why_not = why_not,
                       .make = [=](const T& op, const Step& step, Precision precision) {
                           const DataType type = storage_type(precision);
                           return make_computation(
                               implementation,
                               [=](OperandCursor in, void* workspace, void* stream) {
                                   run(op, step, type, in, workspace, static_cast<cudaStream_t>(stream));
                               },
                               1, workspace_bytes(type, op.rows, op.width));
                       }};
}

void embedding(const Embedding& op, const Step&, Precision precision, OperandCursor in, cudaStream_t stream) {
    const auto* tokens = in.next<const std::int32_t>();
    const void* wte = in.next();
    const void* wpe = in.next();
    cuda::embedding_forward(storage_type(precision), tokens, wte, wpe, in.next(), op.rows, op.seq, op.width, stream);
}

class EmbeddingGradient final : public Computation {
  public:
    EmbeddingGradient(const Embedding& op, DataType type) : op_(op), type_(type) {}
    std::string implementation() const override { return "embedding_gradient"; }
    std::size_t workspace_bytes() const override { return cuda::embedding_gradient_workspace(op_); }
    void run(std::span<void* const> p, void* workspace, void* stream) const override {
        cuda::embedding_gradient(type_, op_, static_cast<const std::int32_t*>(p[0]), p[1], p[2], p[3], workspace,
                                 static_cast<cudaStream_t>(stream));
    }

  private:
    Embedding op_;
    DataType type_;
};

void layer_norm(const LayerNorm& op, const Step& step, Precision precision, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    const void* pre_bias = in.next_if(step.absorbs<BiasAdd>());
    const void* residual = in.next_if(step.absorbs<ResidualAdd>());
    const void* weight = in.next();
    const void* bias = in.next();
    void* sum = in.next_if(step.keeps_intermediates());
    cuda::layer_norm_forward(storage_type(precision), x, pre_bias, residual, weight, bias, sum, in.next(), op.rows,
                             op.width, op.epsilon, stream);
}

void layer_norm_backward(const LayerNorm& op, const Step& step, DataType type, OperandCursor in, void* workspace,
                         cudaStream_t stream) {
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
    cuda::layer_norm_backward(type, x, dy, weight, past, past ? sum : alone, dw, db, workspace, op.rows, op.width,
                              op.epsilon, stream, op.accumulates);
}

std::string wider_than(std::int64_t limit, std::int64_t width) {
    return width <= limit ? "" : fmt::format("width {} is over its limit of {}", width, limit);
}

std::string too_wide(const LayerNorm& op, const Step&, Precision) {
    return wider_than(cuda::layer_norm_max_width, op.width);
}

template <class Norm>
std::string too_wide_backward(const Norm& op, const Step&, Precision) {
    return wider_than(cuda::norm_backward_max_width, op.width);
}

void rms_norm(const RmsNorm& op, const Step&, Precision precision, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    const void* weight = in.next();
    cuda::rms_norm_forward(storage_type(precision), x, weight, in.next(), op.rows, op.width, op.epsilon, stream);
}

std::string rms_too_wide(const RmsNorm& op, const Step&, Precision) {
    return wider_than(cuda::rms_norm_max_width, op.width);
}

void rms_norm_backward(const RmsNorm& op, const Step&, DataType type, OperandCursor in, void* workspace,
                       cudaStream_t stream) {
    const void* x = in.next();
    const void* dy = in.next();
    const void* weight = in.next();
    void* sum = in.next_if(op.accumulates);
    void* dx = in.next();
    void* dw = sum ? sum : in.next();
    cuda::rms_norm_backward(type, x, dy, weight, dx, dw, workspace, op.rows, op.width, op.epsilon, stream,
                            op.accumulates);
}

void bias_add(const BiasAdd& op, const Step&, Precision precision, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    const void* bias = in.next();
    cuda::bias_add_forward(storage_type(precision), x, bias, in.next(), op.rows, op.width, stream);
}

template <Activation f>
void activation(const ActivationOp<f>& op, const Step& step, Precision precision, OperandCursor in,
                cudaStream_t stream) {
    const void* x = in.next();
    const void* bias = in.next_if(step.absorbs<BiasAdd>());
    cuda::bias_activation_forward(storage_type(precision), f, x, bias, in.next(), op.rows, op.width, stream);
}

void bias_backward(const BiasAdd& op, const Step&, DataType type, OperandCursor in, void* workspace,
                   cudaStream_t stream) {
    const void* dy = in.next();
    cuda::bias_backward(type, dy, in.next(), workspace, op.rows, op.width, stream, op.accumulates);
}

template <Activation f>
void activation_backward(const ActivationOp<f>& op, const Step&, Precision precision, OperandCursor in,
                         cudaStream_t stream) {
    const void* dy = in.next();
    const void* x = in.next();
    cuda::activation_backward(storage_type(precision), f, x, dy, in.next(), op.rows * op.width, stream);
}

template <OpStruct... T>
std::vector<ProviderOp> activation_rows(OpList<T...>) {
    return {leaving_no_intermediates(row<T>("bias_activation", activation<T::function>, {{"bias"}}))...,
            row<T>("activation_backward", activation_backward<T::function>, {}, nullptr, Direction::bwd)...};
}

void residual_add(const ResidualAdd& op, const Step&, Precision precision, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    const void* residual = in.next();
    cuda::residual_add_forward(storage_type(precision), x, residual, in.next(), op.rows * op.width, stream);
}

void scale_mask(const ScaleMask& op, const Step&, Precision precision, OperandCursor in, cudaStream_t stream) {
    cuda::scale_mask_forward(scores_type(op.upcast, precision), in.next(), op.shape.score_rows(), op.shape.seq,
                             op.scale, stream);
}

void softmax(const Softmax& op, const Step&, Precision precision, OperandCursor in, cudaStream_t stream) {
    const void* scores = in.next();
    cuda::softmax_forward(scores_type(op.upcast, precision), scores, storage_type(precision), in.next(), op.rows,
                          op.width, stream);
}

/// The distance between rows of logits, in elements.
std::int64_t stride_of(const CrossEntropy& op, const Step& step) {
    return step.padded_columns > 0 ? step.padded_columns : op.vocab;
}

void cross_entropy(const CrossEntropy& op, const Step& step, Precision precision, OperandCursor in,
                   cudaStream_t stream) {
    const void* logits = in.next();
    const auto* tokens = in.next<const std::int32_t>();
    cuda::cross_entropy_forward(storage_type(precision), op, stride_of(op, step), logits, tokens, in.next(), stream);
}

void cross_entropy_gradient(const CrossEntropy& op, const Step& step, Precision precision, OperandCursor in,
                            cudaStream_t stream) {
    void* logits = in.next();
    const auto* tokens = in.next<const std::int32_t>();
    const void* loss_scale = in.next();
    cuda::cross_entropy_gradient(storage_type(precision), op, stride_of(op, step), logits, tokens, loss_scale,
                                 in.next(), stream);
}

class GlobalNormStep final : public Computation {
  public:
    GlobalNormStep(const GlobalNorm& op, DataType type) : op_(op), type_(type) {}
    std::string implementation() const override { return "global_norm"; }
    std::size_t workspace_bytes() const override { return cuda::global_norm_workspace(op_); }
    void run(std::span<void* const> p, void* workspace, void* stream) const override {
        cuda::global_norm(type_, op_, p.first(p.size() - 1), p.back(), workspace, static_cast<cudaStream_t>(stream));
    }

  private:
    GlobalNorm op_;
    DataType type_;
};

class AdamWStep final : public Computation {
  public:
    AdamWStep(const AdamW& op, DataType type) : op_(op), type_(type) {}
    std::string implementation() const override { return "adamw"; }
    void run(std::span<void* const> p, void*, void* stream) const override {
        cuda::adamw(type_, op_, p, static_cast<cudaStream_t>(stream));
    }

  private:
    AdamW op_;
    DataType type_;
};

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
    AttentionForward(const Attention& op, const cuda::AttentionArguments& arguments)
        : arguments_(arguments), saves_lse_(op.saves_lse) {}
    std::string implementation() const override { return cuda::attention_kernel_name(arguments_); }
    void run(std::span<void* const> pointers, void*, void* stream) const override {
        OperandCursor in(pointers);
        cuda::AttentionArguments call = arguments_;
        call.qkv = in.next();
        call.lse = in.next_if(saves_lse_);
        call.out = in.next();
        cuda::attention_forward(call, static_cast<cudaStream_t>(stream));
    }
    /// Longer sequences have rows enough for another tile: they keep this one.
    std::unique_ptr<Computation> resized(const Step& grown, Precision precision) const override {
        const auto& op = grown.as<Attention>();
        cuda::AttentionArguments arguments = attention_arguments(op, precision);
        arguments.tile_rows = arguments_.batch * arguments_.heads * arguments_.seq;
        return std::make_unique<AttentionForward>(op, arguments);
    }

  private:
    cuda::AttentionArguments arguments_;
    bool saves_lse_;
};

std::unique_ptr<Computation> attention(const Attention& op, const Step&, Precision precision) {
    return std::make_unique<AttentionForward>(op, attention_arguments(op, precision));
}

class AttentionGradient final : public Computation {
  public:
    AttentionGradient(const Attention& op, Precision precision)
        : arguments_{nullptr,  nullptr,        nullptr,        nullptr,      nullptr,
                     nullptr,  op.shape.batch, op.shape.heads, op.shape.seq, op.shape.head_size,
                     op.scale, precision} {}
    std::string implementation() const override { return cuda::attention_gradient_kernel_name(arguments_); }
    std::size_t workspace_bytes() const override { return cuda::attention_gradient_workspace(arguments_); }
    void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
        OperandCursor in(pointers);
        cuda::AttentionGradientArguments call = arguments_;
        call.qkv = in.next();
        call.out = in.next();
        call.dout = in.next();
        call.lse = in.next();
        call.dqkv = in.next();
        call.workspace = workspace;
        cuda::attention_backward(call, static_cast<cudaStream_t>(stream));
    }

  private:
    cuda::AttentionGradientArguments arguments_;
};

std::string no_such_attention_gradient(const Attention& op, const Step&, Precision precision) {
    try {
        AttentionGradient(op, precision).implementation();
    } catch (const Unsupported& refusal) {
        return refusal.what();
    }
    return "";
}

}  // namespace

std::unique_ptr<Provider> make_cuda_native(const ProviderContext& context) {
    auto provider = std::make_unique<Provider>(Provider{
        .name = "native",
        .ops = {row<Embedding>("embedding", embedding),
                Computes<Embedding>{.directions = {Direction::bwd},
                                    .make =
                                        [](const Embedding& op, const Step&, Precision precision) {
                                            return std::make_unique<EmbeddingGradient>(op, storage_type(precision));
                                        }},
                row<LayerNorm>("layer_norm", layer_norm, {{"residual"}, {"bias", "residual"}}, too_wide),
                backward_row("layer_norm_backward", cuda::layer_norm_backward_workspace_bytes, layer_norm_backward,
                             {{"residual"}}, too_wide_backward<LayerNorm>),
                row<RmsNorm>("rms_norm", rms_norm, {}, rms_too_wide),
                backward_row("rms_norm_backward", cuda::rms_norm_backward_workspace_bytes, rms_norm_backward, {},
                             too_wide_backward<RmsNorm>),
                ladder_gemm(cuda::top_rung),
                native_conv2d(),
                native_conv2d_dgrad(),
                native_conv2d_wgrad(),
                row<BiasAdd>("bias_add", bias_add),
                backward_row<BiasAdd>("bias_backward", cuda::bias_backward_workspace_bytes, bias_backward),
                row<ResidualAdd>("residual_add", residual_add),
                row<ResidualAdd>("residual_add", residual_add, {}, nullptr, Direction::bwd),
                Computes<Attention>{.why_not = no_such_attention, .make = attention},
                Computes<Attention>{
                    .directions = {Direction::bwd},
                    .why_not = no_such_attention_gradient,
                    .make = [](const Attention& op, const Step&,
                               Precision precision) { return std::make_unique<AttentionGradient>(op, precision); }},
                row<ScaleMask>("scale_mask", scale_mask),
                row<Softmax>("softmax", softmax),
                native_batch_norm(),
                native_hardtanh(),
                native_time_mask(),
                native_to_sequence(),
                native_batch_norm_in_training(),
                native_batch_norm_backward(),
                native_hardtanh_backward(),
                native_time_mask_backward(),
                native_to_sequence_backward(),
                persistent_lstm_row(context),
                row<CrossEntropy>("cross_entropy", cross_entropy),
                row<CrossEntropy>("cross_entropy_gradient", cross_entropy_gradient, {}, nullptr, Direction::bwd),
                native_ctc(),
                native_ctc_gradient(),
                Computes<GlobalNorm>{.make =
                                         [](const GlobalNorm& op, const Step&, Precision precision) {
                                             return std::make_unique<GlobalNormStep>(op, storage_type(precision));
                                         }},
                Computes<AdamW>{.make = [](const AdamW& op, const Step&, Precision precision) {
                    return std::make_unique<AdamWStep>(op, storage_type(precision));
                }}}});
    std::ranges::move(activation_rows(Activations()), std::back_inserter(provider->ops));
    std::ranges::move(recurrent_rows(context), std::back_inserter(provider->ops));
    return provider;
}

}  // namespace kbench
