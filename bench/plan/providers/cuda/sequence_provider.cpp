// Rows of kernels/sequence.h and kernels/norm/batchnorm.h.
#include "bench/plan/providers/cuda/sequence_provider.h"

#include "kernels/norm/batchnorm.h"
#include "kernels/sequence.h"
#include "models/ops/residual.h"

namespace kbench {
namespace {

/// `run(op, step, type, operands, stream)`.
template <OpStruct T, class Run>
ProviderOp row(const char* implementation, Run run, Direction direction = Direction::fwd) {
    return Computes<T>{.directions = {direction}, .make = [=](const T& op, const Step& step, Precision precision) {
                           const DataType type = storage_type(precision);
                           return make_computation(implementation, [=](OperandCursor in, void*, void* stream) {
                               run(op, step, type, in, static_cast<cudaStream_t>(stream));
                           });
                       }};
}

/// `run(op, type, operands, workspace, stream)`.
template <class Run>
ProviderOp with_sums(const char* implementation, Run run, Direction direction) {
    return Computes<BatchNorm>{.directions = {direction},
                               .make = [=](const BatchNorm& op, const Step&, Precision precision) {
                                   const DataType type = storage_type(precision);
                                   return make_computation(
                                       implementation,
                                       [=](OperandCursor in, void* workspace, void* stream) {
                                           run(op, type, in, workspace, static_cast<cudaStream_t>(stream));
                                       },
                                       1, cuda::batch_norm_workspace_bytes(type, op));
                               }};
}

void batch_norm(const BatchNorm& op, const Step& step, DataType type, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    const void* residual = in.next_if(step.absorbs<ResidualAdd>());
    const void* weight = in.next();
    const void* bias = in.next();
    const void* mean = in.next();
    const void* variance = in.next();
    cuda::batch_norm_forward(type, op, x, residual, weight, bias, mean, variance, in.next(), stream);
}

void batch_norm_in_training(const BatchNorm& op, DataType type, OperandCursor in, void* workspace,
                            cudaStream_t stream) {
    const void* x = in.next();
    const void* weight = in.next();
    const void* bias = in.next();
    void* running_mean = in.next();
    void* running_var = in.next();
    void* mean = in.next();
    void* rstd = in.next();
    cuda::batch_norm_in_training(type, op, x, weight, bias, running_mean, running_var, mean, rstd, in.next(), workspace,
                                 stream);
}

void batch_norm_backward(const BatchNorm& op, DataType type, OperandCursor in, void* workspace, cudaStream_t stream) {
    const void* x = in.next();
    const void* dy = in.next();
    const void* weight = in.next();
    const void* mean = in.next();
    const void* rstd = in.next();
    void* dx = in.next_if(!op.accumulates);
    void* dw = in.next();
    void* db = in.next();
    cuda::batch_norm_backward(type, op, x, dy, weight, mean, rstd, dx ? dx : in.next(), dw, db, workspace, stream);
}

void hardtanh(const Hardtanh& op, const Step&, DataType type, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    cuda::hardtanh_forward(type, op, x, in.next(), stream);
}

void hardtanh_backward(const Hardtanh& op, const Step&, DataType type, OperandCursor in, cudaStream_t stream) {
    const void* y = in.next();
    const void* dy = in.next();
    cuda::hardtanh_backward(type, op, y, dy, in.next(), stream);
}

void time_mask(const TimeMask& op, const Step&, DataType type, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    const auto* lengths = in.next<const std::int32_t>();
    cuda::time_mask_forward(type, op, x, lengths, in.next(), stream);
}

void to_sequence(const ToSequence& op, const Step&, DataType type, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    cuda::to_sequence_forward(type, op, x, in.next(), stream);
}

void to_sequence_backward(const ToSequence& op, const Step&, DataType type, OperandCursor in, cudaStream_t stream) {
    const void* dy = in.next();
    cuda::to_sequence_backward(type, op, dy, in.next(), stream);
}

}  // namespace

ProviderOp native_batch_norm() {
    ProviderOp norm = row<BatchNorm>("batch_norm", batch_norm);
    norm.absorbs = {{"residual"}};
    norm.why_not = [](const Step& step, Precision) {
        if (step.as<BatchNorm>().training) return std::string("normalises with running statistics only");
        const bool adds = step.absorbs<ResidualAdd>() && step.as<BatchNorm>().channels > 0;
        return std::string(adds ? "adds a residual only where channels are columns" : "");
    };
    return leaving_no_intermediates(std::move(norm));
}
ProviderOp native_batch_norm_in_training() {
    ProviderOp norm = with_sums("batch_norm_in_training", batch_norm_in_training, Direction::fwd);
    norm.why_not = [](const Step& step, Precision) {
        return std::string(step.as<BatchNorm>().training ? "" : "normalises with the batch's statistics only");
    };
    return norm;
}
ProviderOp native_batch_norm_backward() {
    return with_sums("batch_norm_backward", batch_norm_backward, Direction::bwd);
}
ProviderOp native_hardtanh() { return row<Hardtanh>("hardtanh", hardtanh); }
ProviderOp native_time_mask() { return row<TimeMask>("time_mask", time_mask); }
ProviderOp native_to_sequence() { return row<ToSequence>("to_sequence", to_sequence); }
ProviderOp native_hardtanh_backward() { return row<Hardtanh>("hardtanh_backward", hardtanh_backward, Direction::bwd); }
ProviderOp native_time_mask_backward() { return row<TimeMask>("time_mask", time_mask, Direction::bwd); }
ProviderOp native_to_sequence_backward() {
    return row<ToSequence>("to_sequence_backward", to_sequence_backward, Direction::bwd);
}

}  // namespace kbench
