// Recurrent layers, as rows of `native`.
#include "bench/plan/providers/cuda/recurrent_provider.h"

#include <optional>
#include <utility>

#include "kernels/recurrent/gradient.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/recurrent/weight_gradient.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

/// Reads a pair of operands, the forward direction's and the reverse one's, into the same member of both.
template <class Direction>
class Pairs {
  public:
    explicit Pairs(OperandCursor& in) : in_(in) {}
    Direction forward{}, reverse{};

    template <class Member>
    void read(Member Direction::*member, bool present = true) {
        if (!present) return;
        forward.*member = in_.next();
        reverse.*member = in_.next();
    }

  private:
    OperandCursor& in_;
};

template <Cell cell>
ProviderOp forward_row(int multiprocessors) {
    return Computes<Recurrent<cell>>{
        .why_not =
            [](const Recurrent<cell>& op, const Step&, Precision precision) {
                return cuda::recurrent_unsupported({cell, op.shape, precision});
            },
        .make =
            [multiprocessors](const Recurrent<cell>& op, const Step&, Precision precision) {
                const cuda::RecurrentProblem problem =
                    cuda::recurrent_problem(cell, op.shape, precision, multiprocessors);
                return make_computation(
                    cuda::recurrent_kernel_name(problem),
                    [problem, saves = op.saves](OperandCursor in, void* workspace, void* stream) {
                        using D = cuda::RecurrentDirection;
                        Pairs<D> pairs(in);
                        for (const auto member : {&D::gates_x, &D::weight_hh, &D::bias_ih, &D::bias_hh})
                            pairs.read(member);
                        const auto* lengths = in.next<const std::int32_t>();
                        pairs.read(&D::gates, saves && saved_gates_of(cell) > 0);
                        pairs.read(&D::cells, saves && cell == Cell::lstm);
                        pairs.read(&D::out);
                        cuda::recurrent(problem, pairs.forward, pairs.reverse, lengths, workspace,
                                        static_cast<cudaStream_t>(stream));
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
            [multiprocessors](const Recurrent<cell>& op, const Step&, Precision precision) {
                const cuda::RecurrentProblem problem =
                    cuda::recurrent_gradient_problem(cell, op.shape, precision, multiprocessors);
                return make_computation(
                    cuda::recurrent_gradient_name(problem),
                    [problem](OperandCursor in, void* workspace, void* stream) {
                        using D = cuda::RecurrentGradientDirection;
                        Pairs<D> pairs(in);
                        pairs.read(&D::dout);
                        pairs.read(&D::weight_hh);
                        pairs.read(&D::gates, saved_gates_of(cell) > 0);
                        pairs.read(cell == Cell::lstm ? &D::cells : &D::out);
                        const auto* lengths = in.next<const std::int32_t>();
                        pairs.read(&D::dgates_x);
                        cuda::recurrent_gradient(problem, pairs.forward, pairs.reverse, lengths, workspace,
                                                 static_cast<cudaStream_t>(stream));
                    },
                    1, cuda::recurrent_gradient_workspace(problem));
            }};
}

/// Room for split-k algorithms, as the provider of GEMMs has.
constexpr std::size_t product_workspace_limit = std::size_t{64} << 20;

template <Cell cell>
class WeightGradientComputation final : public Computation {
  public:
    WeightGradientComputation(const Recurrent<cell>& op, Precision precision, std::optional<cuda::LtGemm> product)
        : gradient_(cell, op.shape, precision, op.accumulates, std::move(product)) {}

    std::string implementation() const override {
        return (gradient_.product() ? gradient_.product()->description() : "nothing") + ", sums of columns";
    }
    std::size_t workspace_bytes() const override { return gradient_.workspace_bytes(); }
    /// A GRU's db is rounded before it is summed up.
    int roundings() const override { return cell == Cell::gru ? 2 : 1; }
    std::unique_ptr<Computation> resized(const Step& grown, Precision precision) const override {
        if (!gradient_.product()) return nullptr;
        const auto& op = grown.as<Recurrent<cell>>();
        cuda::LtGemm product(cuda::recurrent_weight_problem(cell, op.shape, precision),
                             gradient_.product()->algorithm(), product_workspace_limit);
        return std::make_unique<WeightGradientComputation>(op, precision, std::move(product));
    }
    void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
        using D = cuda::RecurrentWeightDirection;
        OperandCursor in(pointers);
        Pairs<D> pairs(in);
        pairs.read(&D::dgates_x);
        pairs.read(&D::gates, cell == Cell::gru);
        pairs.read(&D::out);
        for (const auto member : {&D::dweight_hh, &D::dbias_ih, &D::dbias_hh}) pairs.read(member);
        gradient_.run(pairs.forward, pairs.reverse, workspace, static_cast<cudaStream_t>(stream));
    }

  private:
    cuda::RecurrentWeightGradient gradient_;
};

template <Cell cell>
ProviderOp weights_row(const std::shared_ptr<cuda::AlgorithmCache>& cache, cudaStream_t stream) {
    return Computes<Recurrent<cell>>{
        .directions = {Direction::wgrad},
        .make = [cache, stream](const Recurrent<cell>& op, const Step&,
                                Precision precision) -> std::unique_ptr<Computation> {
            const cuda::GemmProblem problem = cuda::recurrent_weight_problem(cell, op.shape, precision);
            std::optional<cuda::LtGemm> product;
            if (problem.k > 0 && cache)
                product.emplace(problem, *cache, product_workspace_limit, stream);
            else if (problem.k > 0)
                product.emplace(problem, product_workspace_limit);
            return std::make_unique<WeightGradientComputation<cell>>(op, precision, std::move(product));
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
