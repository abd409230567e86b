// The row of the persistent LSTM.
#include "bench/plan/providers/cuda/persistent_provider.h"

#include "bench/plan/providers/recurrent_operands.h"
#include "kernels/recurrent/persistent.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

cuda::PersistentLstm layer_of(const Lstm& op, Precision precision, int multiprocessors) {
    cuda::PersistentLstm layer = cuda::persistent_lstm_of(storage_type(precision), op.shape);
    layer.multiprocessors = multiprocessors;
    if (op.saves) layer.variant = cuda::PersistentVariant::saves;
    return layer;
}

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
                const cuda::PersistentLstm layer = layer_of(op, precision, multiprocessors);
                return make_computation(
                    cuda::persistent_lstm_name(layer),
                    [layer, saves = op.saves](OperandCursor in, void* workspace, void* stream) {
                        cuda::PersistentDirection forward{}, reverse{};
                        forward.gates_x = in.next();
                        reverse.gates_x = in.next();
                        forward.weight_hh = in.next();
                        reverse.weight_hh = in.next();
                        forward.bias_ih = in.next();
                        reverse.bias_ih = in.next();
                        forward.bias_hh = in.next();
                        reverse.bias_hh = in.next();
                        const auto* lengths = in.next<const std::int32_t>();
                        for (const auto member : {&cuda::PersistentDirection::gates, &cuda::PersistentDirection::cells})
                            if (saves) {
                                forward.*member = in.next();
                                reverse.*member = in.next();
                            }
                        forward.out = in.next();
                        reverse.out = in.next();
                        cuda::persistent_lstm(layer, forward, reverse, lengths, workspace,
                                              static_cast<cudaStream_t>(stream));
                    },
                    1, cuda::persistent_lstm_workspace(layer));
            }};
}

}  // namespace kbench
