// Binds the operands of a convolution, and of what it absorbs, to kbench's own kernels.
#include "bench/plan/providers/cuda/convolution_provider.h"

#include "kernels/convolution/conv2d.h"
#include "kernels/convolution/conv2d_gradient.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

/// What stands behind a convolution of spectrograms.
const Absorbed chain{TimeMask::kind, BatchNorm::kind, TimeMask::kind, Hardtanh::kind, TimeMask::kind};

std::string why_not(const Conv2d& op, const Step& step, Precision) {
    for (std::size_t i = step.head + 1; i < step.ops.size(); ++i) {
        if (const auto* mask = step.ops[i].get_if<TimeMask>())
            if (*mask != TimeMask{op.batch, op.out_channels * op.out_height(), op.out_width(), mask->frames_per_step})
                return "its conv2d absorbs masks by image only";
        if (const auto* norm = step.ops[i].get_if<BatchNorm>()) {
            if (norm->training) return "its conv2d absorbs batch norms with running statistics only";
            if (norm->channels != op.out_channels || norm->height != op.out_height())
                return "its conv2d absorbs batch norms by filter only";
        }
    }
    return "";
}

/// Takes what the absorbed ops read, in their order.
cuda::Conv2dEpilogue epilogue_of(const Conv2d& op, const Step& step, OperandCursor& in) {
    cuda::Conv2dEpilogue epilogue;
    epilogue.bias = in.next_if(op.bias);
    epilogue.chain = step.ops.size() > 1;
    std::size_t masks = 0;
    for (std::size_t i = step.head + 1; i < step.ops.size(); ++i) {
        if (const auto* mask = step.ops[i].get_if<TimeMask>())
            epilogue.masks[masks++] = {in.next<const std::int32_t>(), mask->frames_per_step};
        if (const auto* norm = step.ops[i].get_if<BatchNorm>()) {
            epilogue.weight = in.next();
            epilogue.shift = in.next();
            epilogue.mean = in.next();
            epilogue.variance = in.next();
            epilogue.epsilon = norm->epsilon;
        }
        if (const auto* clip = step.ops[i].get_if<Hardtanh>()) {
            epilogue.low = clip->low;
            epilogue.high = clip->high;
        }
    }
    return epilogue;
}

std::unique_ptr<Computation> conv2d(const Conv2d& op, const Step& step, Precision precision) {
    return make_computation(
        cuda::conv2d_kernel_name(op, precision),
        [=](OperandCursor in, void* workspace, void* stream) {
            const void* x = in.next();
            const void* weight = in.next();
            const cuda::Conv2dEpilogue epilogue = epilogue_of(op, step, in);
            cuda::conv2d_forward(precision, op, {x, weight, in.next(), workspace}, epilogue,
                                 static_cast<cudaStream_t>(stream));
        },
        1, cuda::conv2d_workspace(op, precision));
}

std::unique_ptr<Computation> dgrad(const Conv2d& op, const Step&, Precision precision) {
    return make_computation(
        cuda::conv2d_dgrad_kernel_name(op, precision),
        [=](OperandCursor in, void* workspace, void* stream) {
            const void* dy = in.next();
            const void* weight = in.next();
            cuda::conv2d_dgrad(precision, op, dy, weight, in.next(), workspace, static_cast<cudaStream_t>(stream));
        },
        1, cuda::conv2d_dgrad_workspace(op, precision), cuda::conv2d_dgrad_spared_flops(op, precision));
}

std::unique_ptr<Computation> wgrad(const Conv2d& op, const Step&, Precision precision) {
    return make_computation(
        cuda::conv2d_wgrad_kernel_name(op, precision),
        [=](OperandCursor in, void* workspace, void* stream) {
            const void* x = in.next();
            const void* dy = in.next();
            void* dw = in.next();
            void* db = in.next_if(op.bias);
            cuda::conv2d_wgrad(precision, op, x, dy, dw, db, workspace, static_cast<cudaStream_t>(stream));
        },
        1, cuda::conv2d_wgrad_workspace(op, precision));
}

template <class Make>
ProviderOp gradient(Direction direction, Make make) {
    return Computes<Conv2d>{
        .directions = {direction},
        .why_not = [](const Conv2d& op, const Step&, Precision) { return cuda::conv2d_gradient_refusal(op); },
        .make = make};
}

}  // namespace

ProviderOp native_conv2d() { return Computes<Conv2d>{.absorbs = {chain}, .why_not = why_not, .make = conv2d}; }
ProviderOp native_conv2d_dgrad() { return gradient(Direction::dgrad, dgrad); }
ProviderOp native_conv2d_wgrad() { return gradient(Direction::wgrad, wgrad); }

}  // namespace kbench
