// The backward of recurrent layers in fp16.
#include "kernels/recurrent/gradient_resident.cuh"
#include "kernels/recurrent/products.cuh"

namespace kbench::cuda::recurrent_layer {

void gradient_fp16(const RecurrentProblem& problem, const RecurrentGradientDirection& forward,
                   const RecurrentGradientDirection& reverse, const std::int32_t* lengths, void* workspace,
                   cudaStream_t stream) {
    launch_gradient<TensorCore<Unit16Bit<__half>>>(problem, forward, reverse, lengths, workspace, stream);
}

}  // namespace kbench::cuda::recurrent_layer
