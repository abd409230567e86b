// The kernels of each precision, which are compiled in files of their own.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/recurrent/problem.h"

namespace kbench::cuda::recurrent_layer {

/// The signature of `recurrent`.
using LaunchLayer = void(const RecurrentProblem&, const RecurrentDirection& forward, const RecurrentDirection& reverse,
                         const std::int32_t* lengths, void* workspace, cudaStream_t);
LaunchLayer steps_fp16, steps_bf16, steps_tf32, steps_fp32, steps_fp64;
/// They take whatever recurrent_unsupported lets through.
LaunchLayer resident_fp16, resident_bf16, resident_tf32, resident_fp32, resident_fp64;

}  // namespace kbench::cuda::recurrent_layer
