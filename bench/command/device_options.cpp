// The choice of a device.
#include "bench/command/device_options.h"

#include <fmt/format.h>

#include "kbench/error.h"

namespace kbench {

DeviceList choose_devices(const DeviceRequest& wanted, std::string& remark) {
    if (wanted.multiprocessors > 0 && wanted.backend == "cpu")
        throw UsageError(
            fmt::format("--sms {}: a CPU has no SMs; leave out --sms or --backend cpu", wanted.multiprocessors));
    if (wanted.backend == "cpu") return make_devices(BackendKind::cpu);
    const std::string why = cuda_unavailable();
    if (why.empty() || wanted.backend == "cuda") return make_devices(BackendKind::cuda, wanted.multiprocessors);
    if (wanted.multiprocessors > 0)
        throw DeviceError(fmt::format("--sms {}: no usable GPU: {}", wanted.multiprocessors, why));
#ifdef KBENCH_HAVE_CUDA
    remark = fmt::format("no usable GPU ({}): this ran on the CPU", why);
#else
    static_cast<void>(remark);  // nothing is missing from a build without CUDA
#endif
    return make_devices(BackendKind::cpu);
}

}  // namespace kbench
