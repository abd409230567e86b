// Providers `native_naive` to `native_mma`: each rung of kbench's own GEMM by itself, only on request.
#include "bench/plan/providers/cuda/ladder_provider.h"

#include <fmt/format.h>

#include "bench/plan/providers/cuda/weight_problem.h"
#include "models/base/error.h"

namespace kbench {
namespace {

using cuda::GemmRung;

class Ladder final : public Provider {
  public:
    explicit Ladder(GemmRung rung)
        : rung_(rung), name_(fmt::format("native_{}", cuda::gemm_rungs[static_cast<int>(rung)])) {}
    std::string_view name() const override { return name_; }
    bool on_request_only() const override { return true; }
    std::string unsupported(const StepKind& kind, Precision precision) const override {
        const auto* step = std::get_if<GemmStep>(&kind);
        if (step == nullptr) return fmt::format("has no {}", op_name(kind));
        return ladder_unsupported(rung_, *step, precision);
    }
    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        if (const std::string reason = unsupported(kind, precision); !reason.empty()) throw Unsupported(reason);
        return make_ladder_gemm(rung_, std::get<GemmStep>(kind), precision);
    }

  private:
    GemmRung rung_;
    std::string name_;
};

}  // namespace

std::string ladder_unsupported(GemmRung rung, const GemmStep& step, Precision precision) {
    if (step.bias || step.gelu || step.residual) return "its GEMM has no epilogue";
    return cuda::gemm_rung_unsupported(rung, precision);
}

std::unique_ptr<Computation> make_ladder_gemm(GemmRung rung, const GemmStep& step, Precision precision) {
    const cuda::GemmProblem problem = weight_problem(step, precision);
    return make_computation(
        cuda::gemm_kernel_name(rung, problem), [rung, problem](OperandCursor in, void*, void* stream) {
            const void* x = in.next();
            const void* w = in.next();
            cuda::gemm(rung, problem, {x, w, nullptr, in.next()}, static_cast<cudaStream_t>(stream));
        });
}

std::unique_ptr<Provider> make_native_naive(const ProviderContext&) {
    return std::make_unique<Ladder>(GemmRung::naive);
}
std::unique_ptr<Provider> make_native_tiled(const ProviderContext&) {
    return std::make_unique<Ladder>(GemmRung::tiled);
}
std::unique_ptr<Provider> make_native_register(const ProviderContext&) {
    return std::make_unique<Ladder>(GemmRung::registers);
}
std::unique_ptr<Provider> make_native_async(const ProviderContext&) {
    return std::make_unique<Ladder>(GemmRung::async);
}
std::unique_ptr<Provider> make_native_mma(const ProviderContext&) { return std::make_unique<Ladder>(GemmRung::mma); }

}  // namespace kbench
