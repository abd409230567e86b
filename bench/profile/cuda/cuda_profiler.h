// The profiler of a GPU, by CUPTI and NVML.
#pragma once

#include <memory>

#include "bench/profile/profiler.h"

namespace kbench::cuda {

std::unique_ptr<Profiler> make_cuda_profiler(Device& device);

}  // namespace kbench::cuda
