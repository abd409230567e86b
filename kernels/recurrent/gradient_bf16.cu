// The backward of recurrent layers in bf16.
#include "kernels/recurrent/gradient_resident.cuh"
#include "kernels/recurrent/products.cuh"

namespace kbench::cuda::recurrent_layer {

void gradient_bf16(const RecurrentProblem& problem, const RecurrentGradientDirection& forward,
                   const RecurrentGradientDirection& reverse, const std::int32_t* lengths, void* workspace,
                   cudaStream_t stream) {
    launch_gradient<TensorCore<Unit16Bit<__nv_bfloat16>>>(problem, forward, reverse, lengths, workspace, stream);
}

}  // namespace kbench::cuda::recurrent_layer
