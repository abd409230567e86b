// Provider `gemv`: products of few rows, as decode steps have them.
#include "bench/plan/bind.h"
#include "bench/plan/provider.h"
#include "bench/plan/providers/cuda/transposed_weight.h"
#include "kernels/gemm/gemv.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

cuda::GemvProblem problem_of(const Gemm& op, const Step& step, Precision precision) {
    const std::int64_t columns = step.padded_columns > 0 ? step.padded_columns : op.n;
    return {precision, op.m, columns, op.k, columns, absorbed_activation(step)};
}

/// Rows up to which it is faster than cuBLASLt: on an H200 a decode step of 36 layers of width 1280 takes 1.26 ms with
/// it in bf16 and 1.38 without, in fp32 1.63 and 1.85; with 16 sequences 2.64 and 2.11, 8.24 and 4.86. tf32 and fp64
/// were not compared.
std::int64_t usual_rows(Precision precision) { return precision == Precision::fp32 ? 1 : 4; }

std::string no_such_product(const Gemm& op, const Step& step, Precision precision) {
    if (step.weights_change && !op.weight_transposed) return "keeps a copy of a weight, which must not change";
    return cuda::gemv_unsupported(problem_of(op, step, precision));
}

/// The kernel reads weights as [n, k]: of one that lies as [k, n] it keeps a copy.
class GemvComputation final : public Computation {
  public:
    GemvComputation(const Gemm& op, const Step& step, Precision precision)
        : problem_(problem_of(op, step, precision)),
          is_packed_(!op.weight_transposed),
          x_(step, precision, "x"),
          weight_(step, precision, "w"),
          bias_(step, precision, "bias?"),
          residual_(step, precision, "residual?"),
          out_(step, precision, "out") {}
    std::string implementation() const override { return cuda::gemv_kernel_name(problem_); }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        if (!is_packed_ || !weight_.is(index)) return std::nullopt;
        return static_cast<std::size_t>(problem_.k * problem_.n) * size_of(storage_type(problem_.precision));
    }
    void pack(std::size_t index, const void* plain, void* packed) const override {
        if (packed_bytes(index))
            pack_transposed(storage_type(problem_.precision), plain, problem_.k, problem_.n, packed);
    }
    void run(const Call& call) const override {
        cuda::gemv(problem_, x_.of(call), weight_.of(call), bias_.of(call), residual_.of(call), out_.of(call),
                   static_cast<cudaStream_t>(call.stream));
    }

  private:
    cuda::GemvProblem problem_;
    bool is_packed_;
    Slot x_, weight_, bias_, residual_, out_;
};

}  // namespace

std::unique_ptr<Provider> make_gemv(const ProviderContext&) {
    std::vector<Absorbed> absorbs = {{"bias"}, {"residual"}, {"bias", "residual"}};
    for (const ActivationFacts& activation : activation_table) {
        absorbs.push_back({activation.kind});
        absorbs.push_back({"bias", activation.kind});
    }
    const auto usual = [](const Gemm& op, const Step& step, Precision precision) -> std::string {
        if (op.m > usual_rows(precision)) return "is usually slower with so many rows";
        return no_such_product(op, step, precision);
    };
    const auto make = [](const Gemm& op, const Step& step, Precision precision) {
        return std::make_unique<GemvComputation>(op, step, precision);
    };
    return std::make_unique<Provider>(Provider{
        .name = "gemv",
        .ops = {
            Computes<Gemm>{.absorbs = absorbs, .why_not = usual, .make = make},
            Computes<Gemm>{.absorbs = absorbs, .on_request_only = true, .why_not = no_such_product, .make = make}}});
}

}  // namespace kbench
