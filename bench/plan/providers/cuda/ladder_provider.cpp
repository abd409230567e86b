// Providers `native_naive` to `native_mma`: each rung of kbench's own GEMM by itself, only on request.
#include "bench/plan/providers/cuda/ladder_provider.h"

#include <fmt/format.h>

#include "bench/plan/providers/cuda/weight_problem.h"
#include "bench/plan/providers/product_slots.h"

namespace kbench {
namespace {

using cuda::GemmRung;

template <GemmRung rung>
std::unique_ptr<Provider> make_rung(const ProviderContext&) {
    return std::make_unique<Provider>(
        Provider{.name = fmt::format("native_{}", cuda::gemm_rungs[static_cast<int>(rung)]),
                 .ops = {ladder_gemm([](Precision) { return rung; })},
                 .on_request_only = true});
}

}  // namespace

ProviderOp ladder_gemm(GemmRung (*rung_for)(Precision precision)) {
    return Computes<Gemm>{
        .why_not = [rung_for](
                       const Gemm&, const Step&,
                       Precision precision) { return cuda::gemm_rung_unsupported(rung_for(precision), precision); },
        .make =
            [rung_for](const Gemm& op, const Step& step, Precision precision) {
                const cuda::GemmProblem problem = weight_problem(op, step, precision);
                const GemmRung rung = rung_for(precision);
                return make_computation(
                    cuda::gemm_kernel_name(rung, problem),
                    [rung, problem, slots = ProductSlots(op, step, precision)](const Call& call) {
                        cuda::gemm(rung, problem,
                                   {slots.left.of(call), slots.right.of(call), nullptr, slots.out.of(call)},
                                   static_cast<cudaStream_t>(call.stream));
                    });
            }};
}

std::unique_ptr<Provider> make_native_naive(const ProviderContext& c) { return make_rung<GemmRung::naive>(c); }
std::unique_ptr<Provider> make_native_tiled(const ProviderContext& c) { return make_rung<GemmRung::tiled>(c); }
std::unique_ptr<Provider> make_native_register(const ProviderContext& c) { return make_rung<GemmRung::registers>(c); }
std::unique_ptr<Provider> make_native_async(const ProviderContext& c) { return make_rung<GemmRung::async>(c); }
std::unique_ptr<Provider> make_native_mma(const ProviderContext& c) { return make_rung<GemmRung::mma>(c); }

}  // namespace kbench
