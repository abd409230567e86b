// Provider `blas`: GEMMs, attention and convolutions in fp64 (and fp32) through CBLAS.
#include "cpu/blas.h"

#include <fmt/format.h>

#include "bench/plan/bind.h"
#include "bench/plan/provider.h"
#include "bench/plan/providers/product_slots.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

std::unique_ptr<Computation> gemm(const Gemm& op, const Step& step, Precision precision) {
    const auto multiply = [type = storage_type(precision), product = op.product(step.direction, step.padded_columns),
                           adds = op.accumulates && step.direction == Direction::wgrad](
                              const void* left, const void* right, void* out, void*) {
        cpu::blas_gemm(type, product, left, right, out, adds);
    };
    return product_computation(cpu::blas_version(), 0, op, step, precision, multiply);
}

std::unique_ptr<Computation> attention(const Attention& op, const Step& step, Precision precision) {
    return bound(cpu::blas_version() + ", blocks of rows", cpu::blas_attention, step, precision,
                 cpu::blas_attention_workspace(storage_type(precision), op));
}

std::unique_ptr<Computation> scores(const AttentionScores&, const Step& step, Precision precision) {
    return bound(
        cpu::blas_version(),
        +[](DataType type, const AttentionScores& op, In<"qkv"> qkv, Out<"scores"> scores) {
            cpu::blas_attention_scores(type, op.shape, qkv, scores);
        },
        step, precision);
}

std::unique_ptr<Computation> context(const AttentionContext&, const Step& step, Precision precision) {
    return bound(
        cpu::blas_version(),
        +[](DataType type, const AttentionContext& op, In<"probabilities"> probabilities, In<"qkv"> qkv,
            Out<"out"> out) { cpu::blas_attention_context(type, op.shape, probabilities, qkv, out); },
        step, precision);
}

std::unique_ptr<Computation> conv2d(const Conv2d& op, const Step& step, Precision precision) {
    return bound(cpu::blas_version() + ", im2col", cpu::blas_conv2d, step, precision,
                 cpu::blas_conv2d_workspace(storage_type(precision), op));
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
