// Provider `native` on the GPU: kbench's own kernels.
#include <fmt/format.h>

#include "bench/plan/provider.h"
#include "bench/plan/providers/cuda/ladder_provider.h"
#include "kernels/attention/attention.h"
#include "kernels/native.h"
#include "models/base/error.h"

namespace kbench {
namespace {

cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }

cuda::AttentionArguments attention_arguments(const Attention& op, Precision precision) {
    return {nullptr, nullptr, op.shape.batch, op.shape.heads, op.shape.seq, op.shape.head_size, op.scale, precision};
}

class CudaNative final : public Provider {
  public:
    std::string_view name() const override { return "native"; }

    std::string unsupported(const StepKind& kind, Precision precision) const override {
        if (const auto* attention = std::get_if<Attention>(&kind)) {
            try {
                cuda::attention_kernel_name(attention_arguments(*attention, precision));
            } catch (const Unsupported& refusal) {
                return refusal.what();
            }
            return "";
        }
        if (const auto* norm = std::get_if<NormStep>(&kind))
            return norm->norm.width <= cuda::layer_norm_max_width
                       ? ""
                       : fmt::format("width {} is over its limit of {}", norm->norm.width, cuda::layer_norm_max_width);
        if (const auto* step = std::get_if<GemmStep>(&kind))
            return ladder_unsupported(cuda::top_rung(precision), *step, precision);
        if (std::holds_alternative<Embedding>(kind) || std::holds_alternative<BiasGeluStep>(kind) ||
            std::holds_alternative<ResidualAdd>(kind) || std::holds_alternative<ScaleMask>(kind) ||
            std::holds_alternative<Softmax>(kind))
            return "";
        return fmt::format("has no {}", op_name(kind));
    }

    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        const DataType type = storage_type(precision);
        if (const auto* op = std::get_if<Embedding>(&kind))
            return make_computation("embedding", [type, op = *op](OperandCursor in, void*, void* stream) {
                const auto* tokens = static_cast<const std::int32_t*>(in.next());
                const void* wte = in.next();
                const void* wpe = in.next();
                cuda::embedding_forward(type, tokens, wte, wpe, in.next(), op.rows, op.seq, op.width,
                                        as_stream(stream));
            });
        if (const auto* op = std::get_if<NormStep>(&kind))
            return make_computation("layer_norm", [type, op = *op](OperandCursor in, void*, void* stream) {
                const void* x = in.next();
                const void* pre_bias = in.next_if(op.pre_bias);
                const void* residual = in.next_if(op.residual);
                const void* weight = in.next();
                const void* bias = in.next();
                void* sum = in.next_if(op.keep_sum);
                cuda::layer_norm_forward(type, x, pre_bias, residual, weight, bias, sum, in.next(), op.norm.rows,
                                         op.norm.width, op.norm.epsilon, as_stream(stream));
            });
        if (const auto* op = std::get_if<BiasGeluStep>(&kind))
            return make_computation(op->gelu ? "bias_gelu" : "bias_add",
                                    [type, op = *op](OperandCursor in, void*, void* stream) {
                                        const void* x = in.next();
                                        const void* bias = in.next_if(op.bias);
                                        const auto launch = op.gelu ? cuda::bias_gelu_forward : cuda::bias_add_forward;
                                        launch(type, x, bias, in.next(), op.rows, op.width, as_stream(stream));
                                    });
        if (const auto* op = std::get_if<ResidualAdd>(&kind))
            return make_computation("residual_add", [type, op = *op](OperandCursor in, void*, void* stream) {
                const void* x = in.next();
                const void* residual = in.next();
                cuda::residual_add_forward(type, x, residual, in.next(), op.rows * op.width, as_stream(stream));
            });
        if (const auto* op = std::get_if<Attention>(&kind)) {
            cuda::AttentionArguments arguments = attention_arguments(*op, precision);
            return make_computation(cuda::attention_kernel_name(arguments),
                                    [arguments](OperandCursor in, void*, void* stream) {
                                        cuda::AttentionArguments call = arguments;
                                        call.qkv = in.next();
                                        call.out = in.next();
                                        cuda::attention_forward(call, as_stream(stream));
                                    });
        }
        if (const auto* op = std::get_if<ScaleMask>(&kind))
            return make_computation("scale_mask", [t = scores_type(op->upcast, precision), op = *op](
                                                      OperandCursor in, void*, void* stream) {
                const AttentionShape& s = op.shape;
                cuda::scale_mask_forward(t, in.next(), s.batch * s.heads * s.seq, s.seq, op.scale, as_stream(stream));
            });
        if (const auto* op = std::get_if<Softmax>(&kind))
            return make_computation("softmax", [from = scores_type(op->upcast, precision), type, op = *op](
                                                   OperandCursor in, void*, void* stream) {
                const void* scores = in.next();
                cuda::softmax_forward(from, scores, type, in.next(), op.rows, op.width, as_stream(stream));
            });
        if (const std::string reason = unsupported(kind, precision); !reason.empty()) throw Unsupported(reason);
        return make_ladder_gemm(cuda::top_rung(precision), std::get<GemmStep>(kind), precision);
    }
};

}  // namespace

std::unique_ptr<Provider> make_cuda_native(const ProviderContext&) { return std::make_unique<CudaNative>(); }

}  // namespace kbench
