// Provider `blas`: GEMMs and attention in fp64 (and fp32) through CBLAS.
#include "cpu/blas.h"

#include <fmt/format.h>

#include "bench/plan/provider.h"
#include "models/base/error.h"

namespace kbench {
namespace {

class BlasAttention final : public Computation {
  public:
    BlasAttention(const Attention& op, DataType type) : op_(op), type_(type) {}
    std::string implementation() const override { return cpu::blas_version() + ", blocks of rows"; }
    std::size_t workspace_bytes() const override { return cpu::blas_attention_workspace(type_, op_); }
    void run(std::span<void* const> pointers, void* workspace, void*) const override {
        cpu::blas_attention(type_, op_, pointers[0], pointers[1], workspace);
    }

  private:
    Attention op_;
    DataType type_;
};

class Blas final : public Provider {
  public:
    std::string_view name() const override { return "blas"; }

    std::string unsupported(const StepKind& kind, Precision precision) const override {
        if (precision != Precision::fp64 && precision != Precision::fp32)
            return fmt::format("CBLAS has no {}", kbench::name(precision));
        if (const auto* gemm = std::get_if<GemmStep>(&kind)) {
            if (gemm->bias || gemm->gelu || gemm->residual) return "CBLAS has no epilogue";
            return gemm->padded_n == gemm->gemm.n ? "" : "no padded columns";
        }
        if (std::holds_alternative<Attention>(kind) || std::holds_alternative<AttentionScores>(kind) ||
            std::holds_alternative<AttentionContext>(kind))
            return "";
        return fmt::format("has no {}", op_name(kind));
    }

    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        const DataType type = storage_type(precision);
        if (const auto* step = std::get_if<GemmStep>(&kind))
            return make_computation(cpu::blas_version(), [type, gemm = step->gemm](OperandCursor in, void*, void*) {
                const void* x = in.next();
                const void* w = in.next();
                cpu::blas_gemm(type, gemm, x, w, in.next());
            });
        if (const auto* attention = std::get_if<Attention>(&kind))
            return std::make_unique<BlasAttention>(*attention, type);
        if (const auto* scores = std::get_if<AttentionScores>(&kind))
            return make_computation(cpu::blas_version(), [type, shape = scores->shape](OperandCursor in, void*, void*) {
                const void* qkv = in.next();
                cpu::blas_attention_scores(type, shape, qkv, in.next());
            });
        if (const auto* context = std::get_if<AttentionContext>(&kind))
            return make_computation(cpu::blas_version(),
                                    [type, shape = context->shape](OperandCursor in, void*, void*) {
                                        const void* probabilities = in.next();
                                        const void* qkv = in.next();
                                        cpu::blas_attention_context(type, shape, probabilities, qkv, in.next());
                                    });
        throw Unsupported(unsupported(kind, precision));
    }
};

}  // namespace

std::unique_ptr<Provider> make_blas(const ProviderContext&) { return std::make_unique<Blas>(); }

}  // namespace kbench
