// The GPU as a device, or some of its SMs: its memory, one stream, CUDA's events and graphs.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "bench/device/cuda/capture.h"
#include "bench/device/cuda/green_context.h"
#include "bench/device/device.h"
#include "bench/device/gpu_code.h"
#include "bench/device/multiprocessors.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/compute_capability.h"
#include "kernels/spin.h"

namespace kbench {
namespace {

std::string runtime_version() {
    int version = 0;
    KBENCH_CUDA(cudaRuntimeGetVersion(&version));
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string uuid_text(const cudaDeviceProp& properties) {
    std::string hex;
    for (const char byte : properties.uuid.bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return fmt::format("GPU-{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                       hex.substr(20));
}

class CudaEvent final : public DeviceEvent {
  public:
    explicit CudaEvent(cudaStream_t stream) : stream_(stream) { KBENCH_CUDA(cudaEventCreate(&event_)); }
    ~CudaEvent() override { cudaEventDestroy(event_); }
    CudaEvent(const CudaEvent&) = delete;
    CudaEvent& operator=(const CudaEvent&) = delete;

    void record() override {
        // External: a node of its own in the graph, instead of an edge between captured nodes; refused elsewhere.
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        KBENCH_CUDA(cudaStreamIsCapturing(stream_, &status));
        const bool in_graph = status == cudaStreamCaptureStatusActive;
        KBENCH_CUDA(
            cudaEventRecordWithFlags(event_, stream_, in_graph ? cudaEventRecordExternal : cudaEventRecordDefault));
    }
    double ms_since(const DeviceEvent& earlier) const override {
        float ms = 0;
        KBENCH_CUDA(cudaEventElapsedTime(&ms, static_cast<const CudaEvent&>(earlier).event_, event_));
        return std::round(static_cast<double>(ms) * 1e6) / 1e6;
    }

  private:
    cudaStream_t stream_;
    cudaEvent_t event_ = nullptr;
};

class CudaGraph final : public DeviceGraph {
  public:
    CudaGraph(cudaStream_t stream, const std::function<void()>& enqueue) : stream_(stream) {
        const cuda::Capture capture(stream, enqueue);
        KBENCH_CUDA(cudaGraphInstantiate(&exec_, capture, 0));
        try {
            KBENCH_CUDA(cudaGraphUpload(exec_, stream));
        } catch (...) {
            cudaGraphExecDestroy(exec_);
            throw;
        }
    }
    ~CudaGraph() override { cudaGraphExecDestroy(exec_); }
    CudaGraph(const CudaGraph&) = delete;
    CudaGraph& operator=(const CudaGraph&) = delete;

    void launch() override { KBENCH_CUDA(cudaGraphLaunch(exec_, stream_)); }

  private:
    cudaStream_t stream_;
    cudaGraphExec_t exec_ = nullptr;
};

/// The GPU of CUDA's number `ordinal`; asks for no context on it.
GpuInfo describe(int ordinal) {
    cudaDeviceProp properties{};
    KBENCH_CUDA(cudaGetDeviceProperties(&properties, ordinal));
    GpuInfo gpu;
    gpu.name = properties.name;
    gpu.uuid = uuid_text(properties);
    gpu.cuda_runtime = runtime_version();
    const cuda::ComputeCapability own{properties.major, properties.minor}, taken = cuda::assumed_capability(own);
    gpu.compute_capability_major = taken.major;
    gpu.compute_capability_minor = taken.minor;
    // A name of its own, or its figures would pass for that GPU's.
    if (taken != own) gpu.name += fmt::format(" (as sm_{}{})", taken.major, taken.minor);
    gpu.multiprocessors = properties.multiProcessorCount;
    gpu.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    gpu.l2_bytes = properties.l2CacheSize;
    return gpu;
}

/// Throws DeviceError, with what helps, where the first calls that need the GPU itself fail.
void require_usable(cudaError_t status, const GpuInfo& gpu, int ordinal) {
    if (status == cudaSuccess) return;
    cudaGetLastError();
    const CudaErrorAdvice* advice = advice_for(status);
    throw DeviceError(fmt::format("GPU {} ({}) cannot be used: {} ({})", ordinal, gpu.name,
                                  advice ? advice->advice : cudaGetErrorString(status), cudaGetErrorName(status)));
}

/// Throws DeviceError where an older capability is assumed and the GPU would run newer code.
void require_code_of_assumed(const GpuInfo& gpu, int ordinal) {
    const cuda::ComputeCapability own = cuda::own_capability(ordinal),
                                  taken{gpu.compute_capability_major, gpu.compute_capability_minor};
    if (taken == own) return;
    const std::string why = why_not_assumed(built_architectures(), own.major, own.minor, taken.major, taken.minor);
    if (!why.empty()) throw DeviceError(why);
}

class CudaDevice final : public Device {
  public:
    CudaDevice(int multiprocessors, int ordinal) {
        info_.ordinal = ordinal;
        if (ordinal == current_gpu) KBENCH_CUDA(cudaGetDevice(&info_.ordinal));
        info_.kind = BackendKind::cuda;
        GpuInfo& gpu = info_.gpu.emplace(describe(info_.ordinal));
        info_.cache_bytes = gpu.l2_bytes;
        if (const std::string why = why_no_code(built_architectures(), gpu.name, gpu.compute_capability_major,
                                                gpu.compute_capability_minor);
            !why.empty())
            throw DeviceError(why);
        require_code_of_assumed(gpu, info_.ordinal);
        require_usable(cudaSetDevice(info_.ordinal), gpu, info_.ordinal);
        require_usable(cuda::load_spin(), gpu, info_.ordinal);
        if (multiprocessors == 0 || multiprocessors == gpu.multiprocessors) {
            KBENCH_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
            return;
        }
        stream_ = cuda::kept_green_context(info_.ordinal, multiprocessors).stream();
        gpu.multiprocessors_of_device = gpu.multiprocessors;
        gpu.multiprocessors = multiprocessors;
    }
    ~CudaDevice() override {
        if (!info_.gpu->multiprocessors_of_device)
            cudaStreamDestroy(stream_);
        else  // a part keeps its own; what still runs there works on memory of others
            cudaStreamSynchronize(stream_);
    }
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;

    const DeviceInfo& info() const override { return info_; }

    void* allocate(std::size_t bytes) override {
        void* memory = nullptr;
        KBENCH_CUDA(cudaMalloc(&memory, bytes));
        return memory;
    }
    void release(void* memory) noexcept override { cudaFree(memory); }
    std::int64_t free_bytes() const override {
        std::size_t free = 0, total = 0;
        KBENCH_CUDA(cudaMemGetInfo(&free, &total));
        return static_cast<std::int64_t>(free);
    }
    void upload(void* device, const void* host, std::size_t bytes) override {
        KBENCH_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_));
        synchronize();
    }
    void download(void* host, const void* device, std::size_t bytes) override {
        KBENCH_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_));
        synchronize();
    }
    void copy(void* to, const void* from, std::size_t bytes) override {
        KBENCH_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
    }
    void fill(void* device, int byte, std::size_t bytes) override {
        KBENCH_CUDA(cudaMemsetAsync(device, byte, bytes, stream_));
    }
    void* host_view(void*) override { return nullptr; }

    void* stream() override { return stream_; }
    void synchronize() override { KBENCH_CUDA(cudaStreamSynchronize(stream_)); }
    std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<CudaEvent>(stream_); }
    std::unique_ptr<DeviceGraph> capture(std::function<void()> enqueue) override {
        return std::make_unique<CudaGraph>(stream_, enqueue);
    }

  private:
    DeviceInfo info_;
    cudaStream_t stream_ = nullptr;  ///< the part's, or one of its own
};

}  // namespace

std::optional<NoGpu> no_gpu() {
    CudaAnswer answer;
    const cudaError_t status = cudaGetDeviceCount(&answer.devices);
    if (status == cudaSuccess && answer.devices > 0) return std::nullopt;
    cudaGetLastError();
    answer.error = status;
    answer.name = cudaGetErrorName(status);
    answer.text = cudaGetErrorString(status);
    if (cudaDriverGetVersion(&answer.driver) != cudaSuccess) answer.driver = 0;
    KBENCH_CUDA(cudaRuntimeGetVersion(&answer.runtime));
    return why_no_gpu(nvidia_files(), answer, std::getenv("CUDA_VISIBLE_DEVICES"));
}

std::vector<GpuInfo> visible_gpus() {
    std::vector<GpuInfo> gpus;
    if (no_gpu()) return gpus;
    int count = 0;
    KBENCH_CUDA(cudaGetDeviceCount(&count));
    for (int ordinal = 0; ordinal < count; ++ordinal) gpus.push_back(describe(ordinal));
    return gpus;
}

std::unique_ptr<Device> make_cuda_device(int multiprocessors, int ordinal) {
    if (const std::string why = cuda_unavailable(); !why.empty()) throw DeviceError("no usable GPU: " + why);
    return std::make_unique<CudaDevice>(multiprocessors, ordinal);
}

void keep_parts(const Device& device) {
    const GpuInfo& gpu = device.info().gpu.value();
    if (gpu.multiprocessors_of_device) return;
    try {
        for (const int count : counts_at_shares(possible_multiprocessors(device)))
            if (count < gpu.multiprocessors) cuda::kept_green_context(device.info().ordinal, count);
    } catch (const DeviceError&) {
        // Whoever asks for a part is told.
    }
}

std::vector<int> possible_multiprocessors(const Device& device) {
    return cuda::possible_multiprocessors(device.info().ordinal);
}

}  // namespace kbench
