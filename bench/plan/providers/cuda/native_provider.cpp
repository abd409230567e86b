// Provider `native` on the GPU: kbench's own kernels.
#include <fmt/format.h>

#include "bench/plan/provider.h"
#include "bench/plan/providers/cuda/ladder_provider.h"
#include "kbench/error.h"
#include "kernels/adamw.h"
#include "kernels/attention/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/global_norm.h"
#include "kernels/layernorm.h"
#include "kernels/rmsnorm.h"
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

std::string too_wide(const LayerNorm& op, const Step&, Precision) {
    return op.width <= cuda::layer_norm_max_width
               ? ""
               : fmt::format("width {} is over its limit of {}", op.width, cuda::layer_norm_max_width);
}

void rms_norm(const RmsNorm& op, const Step&, Precision precision, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    const void* weight = in.next();
    cuda::rms_norm_forward(storage_type(precision), x, weight, in.next(), op.rows, op.width, op.epsilon, stream);
}

std::string rms_too_wide(const RmsNorm& op, const Step&, Precision) {
    return op.width <= cuda::rms_norm_max_width
               ? ""
               : fmt::format("width {} is over its limit of {}", op.width, cuda::rms_norm_max_width);
}

void bias_add(const BiasAdd& op, const Step&, Precision precision, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    const void* bias = in.next();
    cuda::bias_add_forward(storage_type(precision), x, bias, in.next(), op.rows, op.width, stream);
}

void gelu(const Gelu& op, const Step& step, Precision precision, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    const void* bias = in.next_if(step.absorbs<BiasAdd>());
    cuda::bias_gelu_forward(storage_type(precision), x, bias, in.next(), op.rows, op.width, stream);
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

/// Of rows of logits.
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

std::unique_ptr<Computation> attention(const Attention& op, const Step&, Precision precision) {
    const cuda::AttentionArguments arguments = attention_arguments(op, precision);
    return make_computation(cuda::attention_kernel_name(arguments), [arguments](OperandCursor in, void*, void* stream) {
        cuda::AttentionArguments call = arguments;
        call.qkv = in.next();
        call.out = in.next();
        cuda::attention_forward(call, static_cast<cudaStream_t>(stream));
    });
}

}  // namespace

std::unique_ptr<Provider> make_cuda_native(const ProviderContext&) {
    return std::make_unique<Provider>(Provider{
        .name = "native",
        .ops = {row<Embedding>("embedding", embedding),
                Computes<Embedding>{.directions = {Direction::bwd},
                                    .make =
                                        [](const Embedding& op, const Step&, Precision precision) {
                                            return std::make_unique<EmbeddingGradient>(op, storage_type(precision));
                                        }},
                row<LayerNorm>("layer_norm", layer_norm, {{"residual"}, {"bias", "residual"}}, too_wide),
                row<RmsNorm>("rms_norm", rms_norm, {}, rms_too_wide), ladder_gemm(cuda::top_rung),
                row<BiasAdd>("bias_add", bias_add), row<Gelu>("bias_gelu", gelu, {{"bias"}}),
                row<ResidualAdd>("residual_add", residual_add),
                Computes<Attention>{.why_not = no_such_attention, .make = attention},
                row<ScaleMask>("scale_mask", scale_mask), row<Softmax>("softmax", softmax),
                row<CrossEntropy>("cross_entropy", cross_entropy),
                row<CrossEntropy>("cross_entropy_gradient", cross_entropy_gradient, {}, nullptr, Direction::bwd),
                Computes<GlobalNorm>{.make =
                                         [](const GlobalNorm& op, const Step&, Precision precision) {
                                             return std::make_unique<GlobalNormStep>(op, storage_type(precision));
                                         }},
                Computes<AdamW>{.make = [](const AdamW& op, const Step&, Precision precision) {
                    return std::make_unique<AdamWStep>(op, storage_type(precision));
                }}}});
}

}  // namespace kbench
