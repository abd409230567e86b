// The choice of a device.
#include "bench/command/device_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "kbench/error.h"

namespace kbench {
namespace {

constexpr std::string_view or_cpu = "; or measure the CPU with --backend cpu";

/// "0 (NVIDIA H200, GPU-8f2a...), 1 (...)".
std::string listed(std::span<const GpuInfo> gpus) {
    std::vector<std::string> names;
    for (const GpuInfo& gpu : gpus) names.push_back(fmt::format("{} ({}, {})", names.size(), gpu.name, gpu.uuid));
    return fmt::format("{}", fmt::join(names, ", "));
}

/// What follows "GPU-" or "MIG-"; CUDA tells both kinds of UUID as one.
std::string digits_of(const std::string& uuid) { return lower(uuid.substr(std::min<std::size_t>(4, uuid.size()))); }

}  // namespace

std::string parse_gpu_name(const std::string& text) {
    const bool uuid = (text.starts_with("GPU-") || text.starts_with("MIG-")) && text.size() > 4;
    if (!is_gpu_number(text) && !uuid)
        throw UsageError(fmt::format("--device '{}': must be a GPU's number or UUID, such as 1 or GPU-8f2a", text));
    return text;
}

int gpu_named(const std::string& wanted, std::span<const GpuInfo> gpus) {
    if (wanted.empty()) return current_gpu;
    std::vector<int> found;
    for (int ordinal = 0; ordinal < std::ssize(gpus); ++ordinal)
        if (is_gpu_number(wanted)
                ? wanted == std::to_string(ordinal)
                : digits_of(gpus[static_cast<std::size_t>(ordinal)].uuid).starts_with(digits_of(wanted)))
            found.push_back(ordinal);
    if (found.size() == 1) return found.front();
    throw UsageError(fmt::format("--device {}: {}; there are {}", wanted,
                                 found.empty() ? "there is no such GPU" : "several GPUs begin so", listed(gpus)));
}

BackendKind backend_for(const DeviceRequest& wanted, const std::optional<NoGpu>& none) {
    const std::string of_gpu = !wanted.gpu.empty()          ? "--device " + wanted.gpu
                               : wanted.multiprocessors > 0 ? fmt::format("--sms {}", wanted.multiprocessors)
                                                            : "";
    if (wanted.backend == "cpu") {
        if (!wanted.gpu.empty())
            throw UsageError(fmt::format("{}: chooses a GPU; leave out --device or --backend cpu", of_gpu));
        if (wanted.multiprocessors > 0)
            throw UsageError(fmt::format("{}: a CPU has no SMs; leave out --sms or --backend cpu", of_gpu));
        return BackendKind::cpu;
    }
    if (!none && wanted.threads > 0)
        throw UsageError(
            fmt::format("--threads {}: chooses threads of a CPU; leave it out or add --backend cpu", wanted.threads));
    if (!none) return BackendKind::cuda;
    if (!of_gpu.empty()) throw DeviceError(fmt::format("{}: no usable GPU: {}", of_gpu, none->why));
    if (wanted.backend == "cuda") throw DeviceError(fmt::format("no usable GPU: {}", none->why));
    if (none->present) throw DeviceError(fmt::format("no usable GPU: {}{}", none->why, or_cpu));
    return BackendKind::cpu;
}

DeviceList choose_devices(const DeviceRequest& wanted, std::string& remark) {
    const std::optional<NoGpu> none = wanted.backend == "cpu" ? std::nullopt : no_gpu();
    if (backend_for(wanted, none) == BackendKind::cuda) {
        const int ordinal = wanted.gpu.empty() ? current_gpu : gpu_named(wanted.gpu, visible_gpus());
        try {
            return make_devices(BackendKind::cuda, wanted.multiprocessors, ordinal);
        } catch (const DeviceError& error) {
            if (wanted.backend == "cuda" || !wanted.gpu.empty() || wanted.multiprocessors > 0) throw;
            throw DeviceError(fmt::format("{}{}", error.what(), or_cpu));
        }
    }
#ifdef KBENCH_HAVE_CUDA
    if (none) remark = fmt::format("no usable GPU ({}): this ran on the CPU", none->why);
#else
    static_cast<void>(remark);  // nothing is missing from a build without CUDA
#endif
    DeviceList devices;
    devices.push_back(make_cpu_device(wanted.threads));
    return devices;
}

}  // namespace kbench
