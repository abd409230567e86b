// The machine on which truths run: its memory, its roofs, and quick looks at work before it is measured.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/device.h"
#include "kbench/records.h"
#include "tests/profile/known_steps.h"

namespace kbench {

/// Shared by the steps that work on it.
using Memory = std::shared_ptr<DeviceBuffer>;
template <class T>
T* as(const Memory& memory) {
    return reinterpret_cast<T*>(memory->data());
}

class Planter {
  public:
    /// `known` must outlive the planter.
    explicit Planter(const KnownSteps& known) : known_(known) {}

    Device& device() const { return known_.device(); }
    GpuInfo gpu() const { return device().info().gpu.value(); }
    int multiprocessors() const { return gpu().multiprocessors; }
    cudaStream_t stream() const { return static_cast<cudaStream_t>(device().stream()); }

    const CeilingRun& roofs() const { return known_.roofs(); }
    /// Throws Unsupported where it was not measured.
    const Ceiling& roof(std::string_view ceiling) const;

    Memory allocate(std::int64_t bytes) const;  ///< zeroed
    /// A GPU's memory, full of random numbers: what is written decides what power a copy draws. `bytes` is rounded
    /// up to a multiple of probe::memory_chunk_bytes.
    Memory allocate_random(std::int64_t bytes) const;

    /// Milliseconds of work once it is warm.
    double ms(const std::function<void()>& enqueue) const;
    /// The median of single runs of a CPU's work, in milliseconds; 0 on a GPU, whose work nobody shares.
    double pace_ms(const std::vector<KnownStep>& steps) const;
    /// The SMs' clock under that work, once it has settled as long as under settled_budget(): read earlier it is higher
    /// than the one at which the work is judged, and work planted by it differs from what it is called.
    double clock_mhz(const std::function<void()>& enqueue) const;

    /// Looks that fit a truth into two seconds: `extra` sets are counted besides those of every truth.
    KnownBudget budget(std::vector<std::string> extra_sets = {}, std::vector<std::string> metrics = {}) const;
    /// The same for work that draws so much power that the clock falls: it takes half a second to settle, and what NVML
    /// reads of it meanwhile is not what the kernels ran at.
    KnownBudget settled_budget(std::vector<std::string> extra_sets = {}, std::vector<std::string> metrics = {}) const;

  private:
    const KnownSteps& known_;
};

}  // namespace kbench
