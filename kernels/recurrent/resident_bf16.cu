// Recurrent layers in bf16, whose blocks keep their weights for all steps.
#include "kernels/recurrent/launches.h"
#include "kernels/recurrent/products.cuh"
#include "kernels/recurrent/resident.cuh"

namespace kbench::cuda::recurrent_layer {

void resident_bf16(const RecurrentProblem& problem, const RecurrentDirection& forward,
                   const RecurrentDirection& reverse, const std::int32_t* lengths, void* workspace,
                   cudaStream_t stream) {
    launch_resident_layer<TensorCore<Unit16Bit<__nv_bfloat16>>, 4>(problem, forward, reverse, lengths, workspace,
                                                                   stream);
}

}  // namespace kbench::cuda::recurrent_layer
