// The probe of every ceiling as the ways to run it that are tried. Nothing is timed here.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/device.h"
#include "kernels/probe/span.h"

namespace kbench::cuda {

/// One way to run a probe. Holds the memory that it works on.
struct ProbeVariant {
    std::string text;                  ///< what is special about it
    double work = 0;                   ///< in one iteration: bytes, FLOPs, or launches or barriers
    std::function<void(int)> enqueue;  ///< that many iterations, on the device's stream
};

/// Where the probes run.
struct ProbeContext {
    Device& device;
    cudaStream_t stream;
    GpuInfo gpu;
    probe::Span* span;  ///< on the device; kernels that know their clock write it
};

/// How the launches of a probe follow each other.
enum class Pace {
    busy,    ///< as many iterations as fill the time of a launch, enqueued while the device is kept busy
    rested,  ///< the same after a rest, so that the power limit does not bite: the rate is a peak
    single,  ///< as busy, one iteration
    host,    ///< as busy, but the host's time counts
};

/// A probe, and how it is to be run.
struct Probe {
    std::string_view ceiling;  ///< see analysis/machine/ceilings.h
    Pace pace = Pace::busy;
    /// Throws Unsupported where the device cannot do it, DeviceError where memory is short.
    std::vector<ProbeVariant> (*variants)(const ProbeContext& context) = nullptr;
};

/// The probe of the CUDA ceiling of that name; throws std::out_of_range where there is none.
const Probe& probe_of(std::string_view ceiling);

}  // namespace kbench::cuda
