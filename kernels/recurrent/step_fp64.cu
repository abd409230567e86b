// Steps of recurrent layers in fp64.
#include "kernels/recurrent/launches.h"
#include "kernels/recurrent/products.cuh"
#include "kernels/recurrent/step.cuh"

namespace kbench::cuda::recurrent_layer {

void steps_fp64(const RecurrentProblem& problem, const RecurrentDirection& forward, const RecurrentDirection& reverse,
                const std::int32_t* lengths, void* workspace, cudaStream_t stream) {
    launch_layer<TensorCore<UnitFp64>>(problem, forward, reverse, lengths, workspace, stream);
}

}  // namespace kbench::cuda::recurrent_layer
