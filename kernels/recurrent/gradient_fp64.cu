// The backward of recurrent layers in fp64.
#include "kernels/recurrent/gradient_resident.cuh"
#include "kernels/recurrent/products.cuh"

namespace kbench::cuda::recurrent_layer {

void gradient_fp64(const RecurrentProblem& problem, const RecurrentGradientDirection& forward,
                   const RecurrentGradientDirection& reverse, const std::int32_t* lengths, void* workspace,
                   cudaStream_t stream) {
    launch_gradient<TensorCore<UnitFp64>>(problem, forward, reverse, lengths, workspace, stream);
}

}  // namespace kbench::cuda::recurrent_layer
