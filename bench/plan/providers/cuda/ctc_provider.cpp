// Rows of kernels/ctc.h.
#include "bench/plan/providers/cuda/ctc_provider.h"

#include "kernels/ctc.h"

namespace kbench {
namespace {

ProviderOp row(Direction direction) {
    const bool gradient = direction == Direction::bwd;
    return Computes<Ctc>{
        .directions = {direction}, .make = [=](const Ctc& op, const Step& step, Precision precision) {
            const DataType type = storage_type(precision);
            const std::int64_t stride = step.padded_columns > 0 ? step.padded_columns : op.labels;
            return make_computation(
                gradient ? "ctc_gradient" : "ctc",
                [=](OperandCursor in, void* workspace, void* on) {
                    const auto stream = static_cast<cudaStream_t>(on);
                    void* logits = in.next();
                    const auto* lengths = in.next<const std::int32_t>();
                    const auto* targets = in.next<const std::int32_t>();
                    const auto* target_lengths = in.next<const std::int32_t>();
                    const void* loss_scale = in.next_if(gradient);
                    void* losses = in.next();
                    if (gradient)
                        cuda::ctc_gradient(type, op, stride, logits, lengths, targets, target_lengths, loss_scale,
                                           losses, workspace, stream);
                    else
                        cuda::ctc_forward(type, op, stride, logits, lengths, targets, target_lengths, losses, workspace,
                                          stream);
                },
                1,
                gradient ? cuda::ctc_gradient_workspace_bytes(type, op) : cuda::ctc_forward_workspace_bytes(type, op));
        }};
}

}  // namespace

ProviderOp native_ctc() { return row(Direction::fwd); }
ProviderOp native_ctc_gradient() { return row(Direction::bwd); }

}  // namespace kbench
