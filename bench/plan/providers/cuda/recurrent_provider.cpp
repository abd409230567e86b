// Recurrent layers, as rows of `native`.
#include "bench/plan/providers/cuda/recurrent_provider.h"

#include <optional>
#include <utility>

#include "bench/plan/providers/recurrent_operands.h"
#include "kernels/recurrent/gradient.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/weight_gradient.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

template <Cell cell>
ProviderOp forward_row(int multiprocessors) {
    return Computes<Recurrent<cell>>{
        .why_not =
            [](const Recurrent<cell>& op, const Step&, Precision precision) {
                return cuda::recurrent_unsupported({cell, op.shape, precision});
            },
        .make =
            [multiprocessors](const Recurrent<cell>& op, const Step& step, Precision precision) {
                const cuda::RecurrentProblem problem =
                    cuda::recurrent_problem(cell, op.shape, precision, multiprocessors);
                return make_computation(
                    cuda::recurrent_kernel_name(problem),
                    [problem, slots = RecurrentSlots(step, precision)](const Call& call) {
                        const auto in = slots.template operands<cuda::RecurrentDirection>(call);
                        cuda::recurrent(problem, in.forward, in.reverse, in.lengths, call.workspace,
                                        static_cast<cudaStream_t>(call.stream));
                    },
                    1, cuda::recurrent_workspace(problem));
            }};
}

template <Cell cell>
ProviderOp backward_row(int multiprocessors) {
    return Computes<Recurrent<cell>>{
        .directions = {Direction::bwd},
        .why_not =
            [](const Recurrent<cell>& op, const Step&, Precision precision) {
                return cuda::recurrent_gradient_unsupported({cell, op.shape, precision});
            },
        .make =
            [multiprocessors](const Recurrent<cell>& op, const Step& step, Precision precision) {
                const cuda::RecurrentProblem problem =
                    cuda::recurrent_gradient_problem(cell, op.shape, precision, multiprocessors);
                return make_computation(
                    cuda::recurrent_gradient_name(problem),
                    [problem, slots = RecurrentSlots(step, precision)](const Call& call) {
                        const auto in = slots.template operands<cuda::RecurrentGradientDirection>(call);
                        cuda::recurrent_gradient(problem, in.forward, in.reverse, in.lengths, call.workspace,
                                                 static_cast<cudaStream_t>(call.stream));
                    },
                    1, cuda::recurrent_gradient_workspace(problem));
            }};
}

/// Room for split-k algorithms, as the provider of GEMMs has.
constexpr std::size_t product_workspace_limit = std::size_t{64} << 20;

template <Cell cell>
class WeightGradientComputation final : public Computation {
  public:
    WeightGradientComputation(const Step& step, Precision precision, std::optional<cuda::LtGemm> product)
        : slots_(step, precision),
          gradient_(cell, step.as<Recurrent<cell>>().shape, precision, step.as<Recurrent<cell>>().accumulates,
                    std::move(product)) {}

    std::string implementation() const override {
        return (gradient_.product() ? gradient_.product()->description() : "nothing") + ", sums of columns";
    }
    std::size_t workspace_bytes() const override { return gradient_.workspace_bytes(); }
    /// A GRU's db is rounded before it is summed up.
    int roundings() const override { return cell == Cell::gru ? 2 : 1; }
    std::unique_ptr<Computation> resized(const Step& grown, Precision precision) const override {
        if (!gradient_.product()) return nullptr;
        cuda::LtGemm product(cuda::recurrent_weight_problem(cell, grown.as<Recurrent<cell>>().shape, precision),
                             gradient_.product()->algorithm(), product_workspace_limit);
        return std::make_unique<WeightGradientComputation>(grown, precision, std::move(product));
    }
    void run(const Call& call) const override {
        const auto in = slots_.operands<cuda::RecurrentWeightDirection>(call);
        gradient_.run(in.forward, in.reverse, call.workspace, static_cast<cudaStream_t>(call.stream));
    }

  private:
    RecurrentWeightSlots slots_;
    cuda::RecurrentWeightGradient gradient_;
};

template <Cell cell>
ProviderOp weights_row(const std::shared_ptr<cuda::AlgorithmCache>& cache, cudaStream_t stream) {
    return Computes<Recurrent<cell>>{
        .directions = {Direction::wgrad},
        .make = [cache, stream](const Recurrent<cell>& op, const Step& step,
                                Precision precision) -> std::unique_ptr<Computation> {
            const cuda::GemmProblem problem = cuda::recurrent_weight_problem(cell, op.shape, precision);
            std::optional<cuda::LtGemm> product;
            if (problem.k > 0 && cache)
                product.emplace(problem, *cache, product_workspace_limit, stream);
            else if (problem.k > 0)
                product.emplace(problem, product_workspace_limit, stream);
            return std::make_unique<WeightGradientComputation<cell>>(step, precision, std::move(product));
        }};
}

}  // namespace

std::vector<ProviderOp> recurrent_rows(const ProviderContext& context) {
    const auto cache = context.deterministic
                           ? nullptr
                           : std::make_shared<cuda::AlgorithmCache>(context.algorithm_cache, context.retune);
    const int sms = context.multiprocessors;
    const auto stream = static_cast<cudaStream_t>(context.stream);
    return {forward_row<Cell::lstm>(sms),
            forward_row<Cell::gru>(sms),
            forward_row<Cell::rnn>(sms),
            backward_row<Cell::lstm>(sms),
            backward_row<Cell::gru>(sms),
            backward_row<Cell::rnn>(sms),
            weights_row<Cell::lstm>(cache, stream),
            weights_row<Cell::gru>(cache, stream),
            weights_row<Cell::rnn>(cache, stream)};
}

}  // namespace kbench
