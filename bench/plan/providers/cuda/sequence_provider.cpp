// Rows of kernels/sequence.h.
#include "bench/plan/providers/cuda/sequence_provider.h"

#include "kernels/sequence.h"
#include "models/ops/residual.h"

namespace kbench {
namespace {

/// `run(op, step, type, operands, stream)`.
template <OpStruct T, class Run>
ProviderOp row(const char* implementation, Run run) {
    return Computes<T>{.make = [=](const T& op, const Step& step, Precision precision) {
        const DataType type = storage_type(precision);
        return make_computation(implementation, [=](OperandCursor in, void*, void* stream) {
            run(op, step, type, in, static_cast<cudaStream_t>(stream));
        });
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

void hardtanh(const Hardtanh& op, const Step&, DataType type, OperandCursor in, cudaStream_t stream) {
    const void* x = in.next();
    cuda::hardtanh_forward(type, op, x, in.next(), stream);
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
ProviderOp native_hardtanh() { return row<Hardtanh>("hardtanh", hardtanh); }
ProviderOp native_time_mask() { return row<TimeMask>("time_mask", time_mask); }
ProviderOp native_to_sequence() { return row<ToSequence>("to_sequence", to_sequence); }

}  // namespace kbench
