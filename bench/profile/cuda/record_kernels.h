// The kernels of every step from CUPTI's records of whole forwards, beside forwards without records, and what recording
// does to kernels of known length.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "bench/device/backend.h"
#include "bench/device/cuda/graph.h"

namespace kbench::cuda {

/// Launches `forward` on `stream` `runs` times with records and as often without, in turn, each after `warm_up_s` of
/// the same work that keeps the device busy until then, so that clocks and power are those of the timing run; fewer
/// times, but three, where they take more than 10 s. `work`: what each step launches, in the order of capture. Throws
/// DeviceError where CUPTI records nothing or something else.
StepKernels record_kernels(cudaStream_t stream, const Graph& forward, const std::vector<CapturedWork>& work,
                           int multiprocessors, int runs, double warm_up_s);

}  // namespace kbench::cuda
