// Which device a command measures on: the options of every command that measures, and the device they name.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "bench/command/option_table.h"
#include "bench/device/device.h"
#include "models/base/values.h"

namespace kbench {

struct DeviceRequest {
    std::string backend = "auto";
    std::string gpu = {};     ///< CUDA's number, or a UUID from its beginning; empty: the first
    int multiprocessors = 0;  ///< a GPU's; 0: all
    int threads = 0;          ///< a CPU's; 0: as its surroundings say
};

/// The devices of the backend called auto, cuda or cpu; at least one. `remark`: why auto did not take a GPU, when it
/// did not. Throws DeviceError; UsageError where there is no such GPU, or it cannot be taken as so many SMs.
DeviceList choose_devices(const DeviceRequest& wanted, std::string& remark);

/// Where to compute, by what no_gpu() says of this machine: on the CPU only where it was asked for, or where there is
/// no GPU that a CPU's figures could be taken for. Throws DeviceError; UsageError where a CPU is asked for with options
/// of a GPU, or a GPU's threads.
BackendKind backend_for(const DeviceRequest& wanted, const std::optional<NoGpu>& none);

/// CUDA's number of the GPU that --device `wanted` names among `gpus`; current_gpu where it names none. Throws
/// UsageError, with all there are, unless it is exactly one.
int gpu_named(const std::string& wanted, std::span<const GpuInfo> gpus);

/// --device: a number, or the beginning of a UUID. Throws UsageError.
std::string parse_gpu_name(const std::string& text);

/// The rows of these options for a `Request` with a member `device`.
template <class Request>
OptionOf<Request> backend_option() {
    return {"--backend", "WHERE", "auto", "auto (the GPU if there is one), cuda or cpu",
            [](Request& r, const std::string& text) {
                if (text == "gpu") throw UsageError("--backend 'gpu': did you mean cuda? One of auto, cuda, cpu");
                r.device.backend = word("--backend", text, {"auto", "cuda", "cpu"});
            }};
}
template <class Request>
OptionOf<Request> device_option() {
    return {
        "--device", "GPU", "0",
        "which GPU: CUDA's number, or its UUID, of which the beginning is enough (GPU-8f2a); CUDA_VISIBLE_DEVICES hides others, and numbers count what is left",
        [](Request& r, const std::string& text) { r.device.gpu = parse_gpu_name(text); }};
}
template <class Request>
OptionOf<Request> threads_option() {
    return {
        "--threads", "N", "one a core",
        "threads of a CPU, at most the CPUs that the process may use; without it OMP_NUM_THREADS, an affinity mask and a cgroup's quota count",
        [](Request& r, const std::string& text) { r.device.threads = number("--threads", text, 1, "a whole number"); }};
}
template <class Request>
OptionOf<Request> sms_option() {
    return {"--sms", "N", "all", "use only so many of a GPU's SMs, as if it had no more; its memory stays whole",
            [](Request& r, const std::string& text) {
                r.device.multiprocessors = number("--sms", text, 1, "a whole number of SMs");
            }};
}

}  // namespace kbench
