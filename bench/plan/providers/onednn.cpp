// Provider `onednn`: GEMMs with post-ops, layer norm and attention in fp32, bf16 and fp16.
#include "cpu/onednn/onednn.h"

#include <fmt/format.h>

#include "bench/plan/provider.h"
#include "models/base/error.h"

namespace kbench {
namespace {

class MatmulComputation final : public Computation {
  public:
    MatmulComputation(const GemmStep& step, Precision precision)
        : step_(step), matmul_(padded(step), precision, step.bias, step.gelu, step.residual) {}
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
        const void* bias = in.next_if(step_.bias);
        const void* residual = in.next_if(step_.residual);
        matmul_.run(x, w, bias, residual, in.next(), workspace);
    }

  private:
    /// The product as it is computed: its weight has rows of zeros up to padded_n, its output that many columns.
    static Gemm padded(const GemmStep& step) {
        Gemm gemm = step.gemm;
        gemm.n = step.padded_n;
        return gemm;
    }

    GemmStep step_;
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

class OneDnn final : public Provider {
  public:
    std::string_view name() const override { return "onednn"; }

    std::string unsupported(const StepKind& kind, Precision precision) const override {
        if (std::string reason = cpu::onednn_unsupported(precision); !reason.empty()) return reason;
        if (const auto* gemm = std::get_if<GemmStep>(&kind)) {
            const bool epilogue = gemm->bias || gemm->gelu || gemm->residual;
            return gemm->padded_n == gemm->gemm.n || !epilogue ? "" : "no epilogue on padded columns";
        }
        if (const auto* norm = std::get_if<NormStep>(&kind))
            return norm->pre_bias || norm->residual ? "its layer norm takes no residual" : "";
        if (std::holds_alternative<Attention>(kind) || std::holds_alternative<AttentionScores>(kind) ||
            std::holds_alternative<AttentionContext>(kind))
            return "";
        return fmt::format("has no {}", op_name(kind));
    }

    bool packs_weights() const override { return true; }

    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        using cpu::BatchedAttentionProduct;
        if (const auto* gemm = std::get_if<GemmStep>(&kind))
            return std::make_unique<MatmulComputation>(*gemm, precision);
        if (const auto* norm = std::get_if<NormStep>(&kind))
            return wrap(std::make_unique<cpu::Normalise>(norm->norm, precision),
                        [](const cpu::Normalise& p, OperandCursor in, void* workspace) {
                            const void* x = in.next();
                            const void* weight = in.next();
                            const void* bias = in.next();
                            p.run(x, weight, bias, in.next(), workspace);
                        });
        if (const auto* attention = std::get_if<Attention>(&kind))
            return wrap(std::make_unique<cpu::CausalAttention>(*attention, precision),
                        [](const cpu::CausalAttention& p, OperandCursor in, void* workspace) {
                            const void* qkv = in.next();
                            p.run(qkv, in.next(), workspace);
                        });
        if (const auto* scores = std::get_if<AttentionScores>(&kind))
            return wrap(std::make_unique<BatchedAttentionProduct>(BatchedAttentionProduct::Kind::scores, scores->shape,
                                                                  precision, scores->upcast),
                        [](const BatchedAttentionProduct& p, OperandCursor in, void* workspace) {
                            const void* qkv = in.next();
                            p.run(qkv, nullptr, in.next(), workspace);
                        });
        if (const auto* context = std::get_if<AttentionContext>(&kind))
            return wrap(std::make_unique<BatchedAttentionProduct>(BatchedAttentionProduct::Kind::context,
                                                                  context->shape, precision, false),
                        [](const BatchedAttentionProduct& p, OperandCursor in, void* workspace) {
                            const void* probabilities = in.next();
                            const void* qkv = in.next();
                            p.run(qkv, probabilities, in.next(), workspace);
                        });
        throw Unsupported(unsupported(kind, precision));
    }
};

}  // namespace

std::unique_ptr<Provider> make_onednn(const ProviderContext&) { return std::make_unique<OneDnn>(); }

}  // namespace kbench
