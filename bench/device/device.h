// A device: its memory, its one stream, events on it and graphs of it. What is measured with it are functions over it.
// cpu_device.cpp and cuda/cuda_device.cpp implement it; nothing above it includes a CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/device/nvidia.h"
#include "kbench/backend.h"
#include "kbench/records.h"

namespace kbench {

/// What a device is.
struct DeviceInfo {
    BackendKind kind = BackendKind::cpu;
    /// As the CUDA runtime tells it; what the driver and its limits are, MachineState::describe adds.
    std::optional<GpuInfo> gpu;
    int ordinal = 0;      ///< CUDA's number of a GPU
    int threads = 0;      ///< a CPU's, see cpu_threads.h
    bool pinned = false;  ///< whether these stay on their CPUs
    /// CPUs that the process may use: one of each of `cores`, then the others of the same cores. Thread i is on
    /// cpus[i].
    std::vector<int> cpus = {};
    int cores = 0;
    std::string threads_from = {};           ///< what decided how many they are
    std::optional<double> cpu_quota = {};    ///< CPUs of time that control groups allow them
    std::vector<std::string> warnings = {};  ///< what of their number makes times less than they could be
    /// All caches in front of the memory that can hold one array: a GPU's L2, all L2 and L3 of a CPU.
    std::int64_t cache_bytes = 0;
};

/// A mark on a device's stream. A CPU has done all that was enqueued before, so its marks are of the clock.
class DeviceEvent {
  public:
    virtual ~DeviceEvent() = default;
    /// Within Device::capture the mark becomes a part of the graph and is set by each launch of it.
    virtual void record() = 0;
    /// Milliseconds from `earlier`, an event of the same device, to this one; both must have been passed. A GPU's are
    /// rounded to the nanosecond, which is finer than its events tick.
    virtual double ms_since(const DeviceEvent& earlier) const = 0;
};

/// Work that was captured once and is launched as often as wanted: a CUDA graph; on a CPU the captured function.
class DeviceGraph {
  public:
    virtual ~DeviceGraph() = default;
    virtual void launch() = 0;
};

class Device {
  public:
    virtual ~Device() = default;
    virtual const DeviceInfo& info() const = 0;

    virtual void* allocate(std::size_t bytes) = 0;  ///< 256-byte aligned; throws DeviceError
    virtual void release(void* memory) noexcept = 0;
    virtual std::int64_t free_bytes() const = 0;
    virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
    virtual void download(void* host, const void* device, std::size_t bytes) = 0;
    virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  ///< within the device's memory
    virtual void fill(void* device, int byte, std::size_t bytes) = 0;
    /// Where the host can write weights directly: the memory itself on a CPU, null where they must be uploaded.
    virtual void* host_view(void* device) = 0;

    virtual void* stream() = 0;  ///< a cudaStream_t; null on a CPU
    virtual void synchronize() = 0;
    virtual std::unique_ptr<DeviceEvent> make_event() = 0;
    /// A graph of what `enqueue` puts on the stream. Everything in it must have run once before: loading a kernel is
    /// not allowed inside a capture. On a CPU nothing runs yet and `enqueue` is kept.
    virtual std::unique_ptr<DeviceGraph> capture(std::function<void()> enqueue) = 0;

    BackendKind kind() const { return info().kind; }
    int multiprocessors() const { return info().gpu ? info().gpu->multiprocessors : 0; }  ///< 0: no GPU
    bool is_gpu() const { return kind() == BackendKind::cuda; }
};

/// This process's CPUs, with so many `threads`; 0: as many as its surroundings say (cpu_threads.h). Throws UsageError
/// when that many cannot be had.
std::unique_ptr<Device> make_cpu_device(int threads = 0);

/// The GPU that is this thread's already: CUDA's first unless another was chosen.
inline constexpr int current_gpu = -1;
/// The GPU of CUDA's number `ordinal`, which becomes this thread's; with only so many of its `multiprocessors` it
/// behaves as a machine that has no more, but for its memory and L2: what is put on its stream runs on no other SM,
/// launched or as a graph. 0: all. Memory of one such device may be used by all others of the same GPU. Throws
/// DeviceError when there is no usable GPU (cuda_unavailable() tells the reason beforehand), when this build has no
/// code for it, or when its driver cannot divide it; UsageError, with the counts that are possible, when it cannot be
/// divided so.
std::unique_ptr<Device> make_cuda_device(int multiprocessors = 0, int ordinal = current_gpu);
/// The numbers of SMs that make_cuda_device can give of the GPU `device`, rising; the last is all that it has. Throws
/// DeviceError when the driver cannot divide it.
std::vector<int> possible_multiprocessors(const Device& device);
/// Makes the parts of a GPU that stand for shares of it (counts_at_shares) before anything is profiled: afterwards the
/// driver makes none. Where it cannot divide the GPU nothing happens.
void keep_parts(const Device& device);
/// Nothing when CUDA shows this process a GPU, else why not.
std::optional<NoGpu> no_gpu();
/// The same in words; empty when there is a GPU.
std::string cuda_unavailable();
/// The GPUs that CUDA shows this process, by its numbers: those that CUDA_VISIBLE_DEVICES names, all without it.
std::vector<GpuInfo> visible_gpus();

/// The devices of a kind: today one. Takes `multiprocessors` SMs of GPU `ordinal`, or all for 0. Throws DeviceError
/// where there is none, with the reason, and as make_cuda_device.
using DeviceList = std::vector<std::unique_ptr<Device>>;
DeviceList make_devices(BackendKind kind, int multiprocessors = 0, int ordinal = current_gpu);

/// Empty where the device still does the least that can be asked, else its error. After some, such as an illegal
/// address, a CUDA context does nothing any more.
std::string why_lost(Device& device);

/// Device memory that frees itself. Its device must outlive it.
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    DeviceBuffer(Device& device, std::size_t bytes);
    ~DeviceBuffer();
    DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

  private:
    Device* device_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// What enqueueing adds to a launch on an idle device, some 10 us, is lost in one that takes longer than this.
inline constexpr double long_launch_ms = 250;

/// Milliseconds of the last of `launches` in a row: the others keep the device busy while it is enqueued, so that its
/// time is the device's own.
double last_launch_ms(Device& device, DeviceGraph& graph, int launches);

}  // namespace kbench
