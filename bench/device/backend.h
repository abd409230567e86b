// A backend: one device, its memory, its clock, and how a plan is run and timed on it.
// cpu_backend.cpp and cuda/cuda_backend.cpp implement it; nothing above it includes a CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/result/result.h"
#include "bench/plan/provider.h"
#include "bench/profile/counters.h"
#include "bench/profile/machine_state.h"

namespace kbench {

class Plan;

/// Device memory that frees itself.
class Backend;
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    DeviceBuffer(Backend& backend, std::size_t bytes);
    ~DeviceBuffer();
    DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    Backend* backend_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// A way to take one chunk of samples of the same thing, in milliseconds.
struct Measurement {
    std::string name;  ///< graph, stream, forward, host_to_device, device_to_host, enqueue
    std::function<std::vector<double>()> chunk;
};

/// One time for each step, less what the marks themselves take: the time of an interval with nothing in it.
struct StepTimes {
    std::vector<double> us;
    double overhead_us = 0;
    double whole_us = 0;  ///< from the first mark to the last, less all marks; 0 where marks disturb the forward
};

/// The kernels that each step launched.
struct StepKernels {
    ActivityRun run;
    std::vector<std::vector<KernelResult>> by_step;
};

/// Metrics of each step, by name.
struct StepCounters {
    CounterRun run;
    std::vector<std::map<std::string, double>> by_step;
    std::vector<std::string> discarded;  ///< by step; why its values are not to be used
    std::string warning;                 ///< in what the values are less than they might be; empty where in nothing
};

class Backend {
  public:
    virtual ~Backend() = default;
    virtual BackendKind kind() const = 0;

    virtual void* allocate(std::size_t bytes) = 0;  ///< 256-byte aligned; throws DeviceError
    virtual void release(void* memory) noexcept = 0;
    virtual std::int64_t free_bytes() const = 0;
    virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
    virtual void download(void* host, const void* device, std::size_t bytes) = 0;
    virtual void fill_bytes(void* device, int value, std::size_t bytes) = 0;
    /// Where the host can write weights directly: the memory itself on a CPU, null where they must be uploaded.
    virtual void* host_view(void* device) = 0;

    virtual void* stream() = 0;
    virtual void synchronize() = 0;

    /// Makes `plan` ready to be measured (captures the CUDA graph). The plan must outlive the measurements.
    virtual void prepare(const Plan& plan) = 0;
    /// The headline measurement first. Valid until the next prepare().
    virtual std::vector<Measurement> measurements() = 0;
    /// Times of all steps from one run of the whole plan with a mark between steps.
    virtual StepTimes step_times() = 0;

    /// Records every kernel of `runs` forwards (fewer where they are long), in turn with as many without records, after
    /// `warm_up_s` of the same work, so that clocks are those of a busy device. Throws DeviceError where that cannot be
    /// done.
    virtual StepKernels record_kernels(int runs, double warm_up_s) = 0;
    /// A way to take samples of what running every step of op kind `op` twice in a row adds to the forward,
    /// milliseconds: each is one such forward less the plain ones next to it. Valid until the next prepare().
    virtual std::function<std::vector<double>()> doubled(std::string_view op) = 0;

    /// Throws UsageError when this device has no metric that `request` names, as far as it can tell beforehand.
    virtual void check(const CounterRequest& request) const = 0;
    /// Runs the whole plan as often as it takes to count what `request` names. Throws DeviceError where that cannot be
    /// done.
    virtual StepCounters count(const CounterRequest& request) = 0;

    /// What kinds of counters there are here, found by trying: what it counts, and a value or why there is none.
    virtual std::vector<std::pair<std::string, Quantity>> probe_counters() = 0;

    /// Measures every ceiling of this backend (analysis/machine/ceilings.h), about `seconds` in all. One that this
    /// device cannot do is unavailable with its reason. Datasheet values are left empty.
    virtual std::vector<Ceiling> measure_ceilings(double seconds) = 0;
    /// Counts up with every change of what measure_ceilings measures; remembered ceilings are then not used.
    virtual int probe_version() const { return 1; }

    virtual MachineState& machine_state() = 0;
    virtual std::optional<GpuInfo> gpu_info() const { return std::nullopt; }
    virtual void add_libraries(std::map<std::string, std::string>& libraries) const = 0;
    /// Empty when the device can compute in `precision`, else the reason.
    virtual std::string unsupported(Precision precision) const = 0;
    virtual int threads() const { return 0; }
    /// Of all caches in front of the memory that can hold one array: a GPU's L2, all L2 and L3 of a CPU.
    virtual std::int64_t cache_bytes() const = 0;
    virtual bool pinned() const { return false; }
    /// To what the columns of a head are padded, see padded_columns.
    virtual std::int64_t column_multiple(Precision precision) const = 0;
};

std::unique_ptr<Backend> make_cpu_backend();
#ifdef KBENCH_HAVE_CUDA
/// Throws DeviceError when there is no usable GPU; `why` of cuda_unavailable() tells the reason beforehand.
std::unique_ptr<Backend> make_cuda_backend();
/// Empty when there is a usable GPU, else why not ("no CUDA-capable device is detected", "driver too old ...").
std::string cuda_unavailable();
#endif

}  // namespace kbench
