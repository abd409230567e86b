// Recurrent layers, as rows of `native`.
#include "bench/plan/providers/cuda/recurrent_provider.h"

#include "bench/plan/providers/recurrent_operands.h"
#include "kernels/recurrent/recurrent.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

cuda::RecurrentDirection on_device(const cpu::RecurrentDirection& d) {
    return {d.gates_x, d.weight_hh, d.bias_ih, d.bias_hh, d.out};
}

template <Cell cell>
ProviderOp recurrent_row() {
    return Computes<Recurrent<cell>>{
        .why_not =
            [](const Recurrent<cell>& op, const Step&, Precision precision) {
                return op.saves ? saves_nothing(op) : cuda::recurrent_unsupported({cell, op.shape, precision});
            },
        .make =
            [](const Recurrent<cell>& op, const Step&, Precision precision) {
                const cuda::RecurrentProblem problem = cuda::recurrent_problem(cell, op.shape, precision);
                return make_computation(
                    cuda::recurrent_kernel_name(problem),
                    [problem](OperandCursor in, void* workspace, void* stream) {
                        const RecurrentOperands operands(in);
                        cuda::recurrent(problem, on_device(operands.forward), on_device(operands.reverse),
                                        operands.lengths, workspace, static_cast<cudaStream_t>(stream));
                    },
                    1, cuda::recurrent_workspace(problem));
            }};
}

}  // namespace

ProviderOp lstm_row() { return recurrent_row<Cell::lstm>(); }
ProviderOp gru_row() { return recurrent_row<Cell::gru>(); }
ProviderOp rnn_row() { return recurrent_row<Cell::rnn>(); }

}  // namespace kbench
