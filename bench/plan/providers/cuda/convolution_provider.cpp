// Binds the operands of a convolution, and of what it absorbs, to kbench's own kernels.
#include "bench/plan/providers/cuda/convolution_provider.h"

#include "kernels/convolution/conv2d.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

std::unique_ptr<Computation> conv2d(const Conv2d& op, const Step&, Precision precision) {
    return make_computation(
        cuda::conv2d_kernel_name(op, precision),
        [=](OperandCursor in, void* workspace, void* stream) {
            const void* x = in.next();
            const void* weight = in.next();
            cuda::Conv2dEpilogue epilogue;
            epilogue.bias = in.next_if(op.bias);
            cuda::conv2d_forward(precision, op, {x, weight, in.next(), workspace}, epilogue,
                                 static_cast<cudaStream_t>(stream));
        },
        1, cuda::conv2d_workspace(op, precision));
}

}  // namespace

ProviderOp native_conv2d() { return Computes<Conv2d>{.make = conv2d}; }

}  // namespace kbench
