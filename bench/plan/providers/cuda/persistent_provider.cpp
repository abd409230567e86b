// The row of the persistent LSTM.
#include "bench/plan/providers/cuda/persistent_provider.h"

#include "bench/plan/providers/cuda/persistent_account.h"
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
    explicit PersistentComputation(const cuda::PersistentLstm& layer) : layer_(layer) {}
    std::string implementation() const override { return cuda::persistent_lstm_name(layer_); }
    std::size_t workspace_bytes() const override { return cuda::persistent_lstm_workspace(layer_); }
    void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
        const Operands in = operands_of(pointers);
        cuda::persistent_lstm(layer_, in.forward, in.reverse, in.lengths, workspace, static_cast<cudaStream_t>(stream));
    }
    std::optional<StepAccount> account(std::span<void* const> pointers, void* workspace, void* stream) const override {
        if (saves()) return std::nullopt;  // the kernel with clocks saves nothing: it is another one
        const Operands in = operands_of(pointers);
        return account_of_persistent_lstm(layer_, in.forward, in.reverse, in.lengths, workspace,
                                          static_cast<cudaStream_t>(stream));
    }

  private:
    struct Operands {
        cuda::PersistentDirection forward{}, reverse{};
        const std::int32_t* lengths = nullptr;
    };
    bool saves() const { return layer_.variant == cuda::PersistentVariant::saves; }
    Operands operands_of(std::span<void* const> pointers) const {
        OperandCursor in(pointers);
        Operands made;
        made.forward.gates_x = in.next();
        made.reverse.gates_x = in.next();
        made.forward.weight_hh = in.next();
        made.reverse.weight_hh = in.next();
        made.forward.bias_ih = in.next();
        made.reverse.bias_ih = in.next();
        made.forward.bias_hh = in.next();
        made.reverse.bias_hh = in.next();
        made.lengths = in.next<const std::int32_t>();
        for (const auto member : {&cuda::PersistentDirection::gates, &cuda::PersistentDirection::cells})
            if (saves()) {
                made.forward.*member = in.next();
                made.reverse.*member = in.next();
            }
        made.forward.out = in.next();
        made.reverse.out = in.next();
        return made;
    }
    cuda::PersistentLstm layer_;
};

}  // namespace

ProviderOp persistent_lstm_row(const ProviderContext& context) {
    const int multiprocessors = context.multiprocessors;
    return Computes<Lstm>{
        .precisions = {Precision::fp16, Precision::bf16},
        .why_not =
            [multiprocessors](const Lstm& op, const Step&, Precision precision) {
                return cuda::persistent_lstm_unsupported(layer_of(op, precision, multiprocessors));
            },
        .make =
            [multiprocessors](const Lstm& op, const Step&, Precision precision) {
                return std::make_unique<PersistentComputation>(layer_of(op, precision, multiprocessors));
            }};
}

}  // namespace kbench
