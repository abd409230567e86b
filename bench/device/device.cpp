// What all devices share: the list of them, memory that frees itself, the time of a launch.
#include "bench/device/device.h"

#include <cstdlib>

#include "kbench/error.h"

namespace kbench {

#ifndef KBENCH_HAVE_CUDA
std::optional<NoGpu> no_gpu() {
    return why_no_gpu(nvidia_files(), {.built = false}, std::getenv("CUDA_VISIBLE_DEVICES"));
}
std::unique_ptr<Device> make_cuda_device(int, int) { throw DeviceError("no usable GPU: " + cuda_unavailable()); }
std::vector<int> possible_multiprocessors(const Device&) { throw DeviceError("no usable GPU: " + cuda_unavailable()); }
void keep_parts(const Device&) {}
std::vector<GpuInfo> visible_gpus() { return {}; }
#endif

std::string cuda_unavailable() {
    const std::optional<NoGpu> none = no_gpu();
    return none ? none->why : "";
}

DeviceList make_devices(BackendKind kind, int multiprocessors, int ordinal) {
    DeviceList devices;
    devices.push_back(kind == BackendKind::cuda ? make_cuda_device(multiprocessors, ordinal) : make_cpu_device());
    return devices;
}

std::string why_lost(Device& device) {
    try {
        const DeviceBuffer buffer(device, 256);
        device.fill(buffer.data(), 0, 256);
        device.synchronize();
        return "";
    } catch (const Error& error) {
        return error.what();
    }
}

DeviceBuffer::DeviceBuffer(Device& device, std::size_t bytes)
    : device_(&device), data_(bytes > 0 ? static_cast<std::byte*>(device.allocate(bytes)) : nullptr), bytes_(bytes) {}

DeviceBuffer::~DeviceBuffer() {
    if (data_ != nullptr) device_->release(data_);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

double last_launch_ms(Device& device, DeviceGraph& graph, int launches) {
    const std::unique_ptr<DeviceEvent> before = device.make_event(), after = device.make_event();
    for (int i = 1; i < launches; ++i) graph.launch();
    before->record();
    graph.launch();
    after->record();
    device.synchronize();
    return after->ms_since(*before);
}

}  // namespace kbench
