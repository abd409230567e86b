// The step kernels of each precision, compiled apart.
#pragma once

#include "kernels/recurrent/recurrent.h"

namespace kbench::cuda::recurrent_layer {

/// As `recurrent`.
using LaunchSteps = void(const RecurrentProblem&, const RecurrentDirection& forward, const RecurrentDirection& reverse,
                         const std::int32_t* lengths, void* workspace, cudaStream_t);
LaunchSteps steps_fp16, steps_bf16, steps_tf32, steps_fp32, steps_fp64;

}  // namespace kbench::cuda::recurrent_layer
