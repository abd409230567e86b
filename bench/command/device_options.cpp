// The choice of a device.
#include "bench/command/device_options.h"

#include <fmt/format.h>

#include "kbench/error.h"

namespace kbench {
namespace {

constexpr std::string_view or_cpu = "; or measure the CPU with --backend cpu";

}  // namespace

BackendKind backend_for(const DeviceRequest& wanted, const std::optional<NoGpu>& none) {
    const std::string of_gpu = wanted.multiprocessors > 0 ? fmt::format("--sms {}", wanted.multiprocessors) : "";
    if (wanted.backend == "cpu") {
        if (wanted.multiprocessors > 0)
            throw UsageError(fmt::format("{}: a CPU has no SMs; leave out --sms or --backend cpu", of_gpu));
        return BackendKind::cpu;
    }
    if (!none) return BackendKind::cuda;
    if (!of_gpu.empty()) throw DeviceError(fmt::format("{}: no usable GPU: {}", of_gpu, none->why));
    if (wanted.backend == "cuda") throw DeviceError(fmt::format("no usable GPU: {}", none->why));
    if (none->present) throw DeviceError(fmt::format("no usable GPU: {}{}", none->why, or_cpu));
    return BackendKind::cpu;
}

DeviceList choose_devices(const DeviceRequest& wanted, std::string& remark) {
    const std::optional<NoGpu> none = wanted.backend == "cpu" ? std::nullopt : no_gpu();
    if (backend_for(wanted, none) == BackendKind::cuda) {
        try {
            return make_devices(BackendKind::cuda, wanted.multiprocessors);
        } catch (const DeviceError& error) {
            if (wanted.backend == "cuda" || wanted.multiprocessors > 0) throw;
            throw DeviceError(fmt::format("{}{}", error.what(), or_cpu));
        }
    }
#ifdef KBENCH_HAVE_CUDA
    if (none) remark = fmt::format("no usable GPU ({}): this ran on the CPU", none->why);
#else
    static_cast<void>(remark);  // nothing is missing from a build without CUDA
#endif
    return make_devices(BackendKind::cpu);
}

}  // namespace kbench
