// Some of a GPU's SMs as a device of their own: a green context of the driver (CUDA 12.5 or newer) and its one stream.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <span>
#include <string>
#include <vector>

namespace kbench::cuda {

/// Kernels on its stream run on its SMs, also those of a graph that was captured and is launched there. Memory stays
/// the primary context's: all streams of the GPU share it.
class GreenContext {
  public:
    /// Throws UsageError, with the counts that are possible, unless GPU `ordinal` can give exactly so many SMs;
    /// DeviceError where its driver knows no green contexts.
    GreenContext(int ordinal, int multiprocessors);
    ~GreenContext();
    GreenContext(const GreenContext&) = delete;
    GreenContext& operator=(const GreenContext&) = delete;
    cudaStream_t stream() const { return stream_; }

  private:
    CUgreenCtx context_ = nullptr;
    cudaStream_t stream_ = nullptr;
};

/// The part of so many SMs of GPU `ordinal`, made when it is first asked for and kept until the process ends: once
/// CUPTI has profiled in a process its driver makes no more of them (error 801). Throws as GreenContext does.
const GreenContext& kept_green_context(int ordinal, int multiprocessors);

/// The numbers of SMs that a part of GPU `ordinal` can have, rising, and last all that it has: the driver rounds any
/// other number up. Throws DeviceError where the driver knows no green contexts.
std::vector<int> possible_multiprocessors(int ordinal);

}  // namespace kbench::cuda
