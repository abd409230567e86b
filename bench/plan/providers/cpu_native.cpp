// Provider `native` on the CPU: kbench's own vector loops for the memory-bound steps.
#include <fmt/format.h>

#include "bench/plan/provider.h"
#include "cpu/native.h"
#include "models/base/error.h"

namespace kbench {
namespace {

class CpuNative final : public Provider {
  public:
    std::string_view name() const override { return "native"; }

    std::string unsupported(const StepKind& kind, Precision precision) const override {
        if (precision == Precision::tf32) return "tf32 is a format of GPU tensor cores";
        if (const auto* norm = std::get_if<NormStep>(&kind))
            return norm->pre_bias ? "its layer norm takes no bias before it" : "";
        if (std::holds_alternative<Embedding>(kind) || std::holds_alternative<BiasGeluStep>(kind) ||
            std::holds_alternative<ResidualAdd>(kind) || std::holds_alternative<ScaleMask>(kind) ||
            std::holds_alternative<Softmax>(kind))
            return "";
        return fmt::format("has no {}", op_name(kind));
    }

    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        const DataType type = storage_type(precision);
        if (const auto* op = std::get_if<Embedding>(&kind))
            return make_computation("cpu::embedding", [type, op = *op](OperandCursor in, void*, void*) {
                const auto* tokens = static_cast<const std::int32_t*>(in.next());
                const void* wte = in.next();
                const void* wpe = in.next();
                cpu::embedding(type, op, tokens, wte, wpe, in.next());
            });
        if (const auto* op = std::get_if<NormStep>(&kind))
            return make_computation("cpu::layer_norm", [type, op = *op](OperandCursor in, void*, void*) {
                const void* x = in.next();
                const void* residual = in.next_if(op.residual);
                const void* weight = in.next();
                const void* bias = in.next();
                void* sum = in.next_if(op.keep_sum);
                cpu::layer_norm(type, op.norm, x, residual, weight, bias, sum, in.next());
            });
        if (const auto* op = std::get_if<BiasGeluStep>(&kind))
            return make_computation("cpu::bias_gelu", [type, op = *op](OperandCursor in, void*, void*) {
                const void* x = in.next();
                const void* bias = in.next_if(op.bias);
                cpu::bias_gelu(type, op.rows, op.width, x, bias, op.gelu, in.next());
            });
        if (const auto* op = std::get_if<ResidualAdd>(&kind))
            return make_computation("cpu::residual_add", [type, op = *op](OperandCursor in, void*, void*) {
                const void* x = in.next();
                const void* residual = in.next();
                cpu::residual_add(type, op.rows * op.width, x, residual, in.next());
            });
        if (const auto* op = std::get_if<ScaleMask>(&kind))
            return make_computation("cpu::scale_mask",
                                    [type = scores_type(op->upcast, precision), op = *op](
                                        OperandCursor in, void*, void*) { cpu::scale_mask(type, op, in.next()); });
        if (const auto* op = std::get_if<Softmax>(&kind))
            return make_computation("cpu::softmax", [from = scores_type(op->upcast, precision), type, op = *op](
                                                        OperandCursor in, void*, void*) {
                const void* scores = in.next();
                cpu::softmax(from, type, op, scores, in.next());
            });
        throw Unsupported(unsupported(kind, precision));
    }
};

}  // namespace

std::unique_ptr<Provider> make_cpu_native(const ProviderContext&) { return std::make_unique<CpuNative>(); }

}  // namespace kbench
