// The row of the persistent LSTM.
#include "bench/plan/providers/cuda/persistent_provider.h"

#include "bench/plan/providers/cuda/persistent_account.h"
#include "bench/plan/providers/recurrent_operands.h"
#include "kernels/recurrent/persistent/persistent.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

cuda::PersistentLstm layer_of(const Lstm& op, Precision precision, int multiprocessors) {
    cuda::PersistentLstm layer = cuda::persistent_lstm_of(storage_type(precision), op.shape);
    layer.multiprocessors = multiprocessors;
    if (op.saves) layer.variant = cuda::PersistentVariant::saves;
    return layer;
}

class PersistentComputation final : public Computation {
  public:
    PersistentComputation(const cuda::PersistentLstm& layer, const Step& step, Precision precision)
        : layer_(layer), slots_(step, precision) {}
    std::string implementation() const override { return cuda::persistent_lstm_name(layer_); }
    std::size_t workspace_bytes() const override { return cuda::persistent_lstm_workspace(layer_); }
    void run(const Call& call) const override {
        const auto in = slots_.operands<cuda::PersistentDirection>(call);
        cuda::persistent_lstm(layer_, in.forward, in.reverse, in.lengths, call.workspace,
                              static_cast<cudaStream_t>(call.stream));
    }
    std::optional<StepAccount> account(const Call& call) const override {
        // The kernel with clocks saves nothing: it is another one.
        if (layer_.variant == cuda::PersistentVariant::saves) return std::nullopt;
        const auto in = slots_.operands<cuda::PersistentDirection>(call);
        return account_of_persistent_lstm(layer_, in.forward, in.reverse, in.lengths, call.workspace,
                                          static_cast<cudaStream_t>(call.stream));
    }

  private:
    cuda::PersistentLstm layer_;
    RecurrentSlots slots_;
};

}  // namespace

ProviderOp persistent_lstm_row(const ProviderContext& context) {
    const int multiprocessors = context.multiprocessors;
    return Computes<Lstm>{.precisions = {Precision::fp16, Precision::bf16},
                          .why_not =
                              [multiprocessors](const Lstm& op, const Step&, Precision precision) {
                                  return cuda::persistent_lstm_unsupported(layer_of(op, precision, multiprocessors));
                              },
                          .make =
                              [multiprocessors](const Lstm& op, const Step& step, Precision precision) {
                                  return std::make_unique<PersistentComputation>(
                                      layer_of(op, precision, multiprocessors), step, precision);
                              }};
}

}  // namespace kbench
