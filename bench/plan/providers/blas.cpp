// Provider `blas`: GEMMs, attention and convolutions in fp64 (and fp32) through CBLAS.
#include "cpu/blas.h"

#include <fmt/format.h>

#include "bench/plan/provider.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

class BlasAttention final : public Computation {
  public:
    BlasAttention(const Attention& op, DataType type) : op_(op), type_(type) {}
    std::string implementation() const override { return cpu::blas_version() + ", blocks of rows"; }
    std::size_t workspace_bytes() const override { return cpu::blas_attention_workspace(type_, op_); }
    void run(std::span<void* const> pointers, void* workspace, void*) const override {
        OperandCursor in(pointers);
        const void* qkv = in.next();
        void* lse = in.next_if(op_.saves_lse);
        cpu::blas_attention(type_, op_, qkv, lse, in.next(), workspace);
    }

  private:
    Attention op_;
    DataType type_;
};

std::unique_ptr<Computation> gemm(const Gemm& op, const Step& step, Precision precision) {
    return make_computation(
        cpu::blas_version(),
        [type = storage_type(precision), product = op.product(step.direction, step.padded_columns),
         accumulates = op.accumulates && step.direction == Direction::wgrad](OperandCursor in, void*, void*) {
            const void* left = in.next();
            const void* right = in.next();
            if (product.left_is_second) std::swap(left, right);
            cpu::blas_gemm(type, product, left, right, in.next(), accumulates);
        });
}

std::unique_ptr<Computation> attention(const Attention& op, const Step&, Precision precision) {
    return std::make_unique<BlasAttention>(op, storage_type(precision));
}

std::unique_ptr<Computation> scores(const AttentionScores& op, const Step&, Precision precision) {
    return make_computation(cpu::blas_version(),
                            [type = storage_type(precision), shape = op.shape](OperandCursor in, void*, void*) {
                                const void* qkv = in.next();
                                cpu::blas_attention_scores(type, shape, qkv, in.next());
                            });
}

std::unique_ptr<Computation> context(const AttentionContext& op, const Step&, Precision precision) {
    return make_computation(cpu::blas_version(),
                            [type = storage_type(precision), shape = op.shape](OperandCursor in, void*, void*) {
                                const void* probabilities = in.next();
                                const void* qkv = in.next();
                                cpu::blas_attention_context(type, shape, probabilities, qkv, in.next());
                            });
}

std::unique_ptr<Computation> conv2d(const Conv2d& op, const Step&, Precision precision) {
    const DataType type = storage_type(precision);
    return make_computation(
        cpu::blas_version() + ", im2col",
        [type, op](OperandCursor in, void* workspace, void*) {
            const void* x = in.next();
            const void* weight = in.next();
            const void* bias = in.next_if(op.bias);
            cpu::blas_conv2d(type, op, x, weight, bias, in.next(), workspace);
        },
        1, cpu::blas_conv2d_workspace(type, op));
}

std::string lacks(Precision precision) {
    const bool has = precision == Precision::fp64 || precision == Precision::fp32;
    return has ? "" : fmt::format("CBLAS has no {}", name(precision));
}

std::string no_padding(const Gemm&, const Step& step, Precision) {
    return step.padded_columns == 0 || step.direction != Direction::fwd ? "" : "no padded columns";
}

}  // namespace

std::unique_ptr<Provider> make_blas(const ProviderContext&) {
    return std::make_unique<Provider>(
        Provider{.name = "blas",
                 .ops = {Computes<Gemm>{.directions = {Direction::fwd, Direction::dgrad, Direction::wgrad},
                                        .why_not = no_padding,
                                        .make = gemm},
                         Computes<Attention>{.make = attention}, Computes<AttentionScores>{.make = scores},
                         Computes<AttentionContext>{.make = context}, Computes<Conv2d>{.make = conv2d}},
                 .lacks = lacks});
}

}  // namespace kbench
