// Reads the assumption anew each time, so that a test may set it.
#include "kernels/compute_capability.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstdlib>

#include "analysis/machine/occupancy.h"
#include "kbench/error.h"
#include "kernels/check.h"

namespace kbench::cuda {

ComputeCapability assumed_capability(ComputeCapability device) {
    const char* text = std::getenv(assumed_capability_variable);
    if (text == nullptr) return device;
    for (const DeviceLimits& limits : known_architectures) {
        const ComputeCapability known{limits.compute_capability_major, limits.compute_capability_minor};
        if (text == fmt::format("{}.{}", known.major, known.minor) && known <= device) return known;
    }
    throw UsageError(fmt::format("{}={}: expected a compute capability up to this GPU's {}.{}, such as 8.0",
                                 assumed_capability_variable, text, device.major, device.minor));
}

ComputeCapability own_capability(int ordinal) {
    ComputeCapability found;
    KBENCH_CUDA(cudaDeviceGetAttribute(&found.major, cudaDevAttrComputeCapabilityMajor, ordinal));
    KBENCH_CUDA(cudaDeviceGetAttribute(&found.minor, cudaDevAttrComputeCapabilityMinor, ordinal));
    return found;
}

ComputeCapability compute_capability() {
    int device = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    return assumed_capability(own_capability(device));
}

}  // namespace kbench::cuda
