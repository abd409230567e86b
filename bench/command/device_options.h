// Which device a command measures on: the options of every command that measures, and the device they name.
#pragma once

#include <optional>
#include <string>

#include "bench/command/option_table.h"
#include "bench/device/device.h"
#include "models/base/values.h"

namespace kbench {

struct DeviceRequest {
    std::string backend = "auto";
    int multiprocessors = 0;  ///< of a GPU; 0: all
};

/// The devices of the backend called auto, cuda or cpu; at least one. `remark`: why auto did not take a GPU, when it
/// did not. Throws DeviceError; UsageError where the device cannot be taken as so many SMs.
DeviceList choose_devices(const DeviceRequest& wanted, std::string& remark);

/// Where to compute, by what no_gpu() says of this machine: on the CPU only where it was asked for, or where there is
/// no GPU that a CPU's figures could be taken for. Throws DeviceError; UsageError where a CPU is asked for with options
/// of a GPU.
BackendKind backend_for(const DeviceRequest& wanted, const std::optional<NoGpu>& none);

/// The rows of these options for a `Request` with a member `device`.
template <class Request>
OptionOf<Request> backend_option() {
    return {"--backend", "WHERE", "auto", "auto (the GPU if there is one), cuda or cpu",
            [](Request& r, const std::string& text) {
                r.device.backend = word("--backend", text, {"auto", "cuda", "cpu"});
            }};
}
template <class Request>
OptionOf<Request> sms_option() {
    return {"--sms", "N", "all",
            "of a GPU's SMs only so many, as a machine with no more has them; its memory stays whole",
            [](Request& r, const std::string& text) {
                r.device.multiprocessors = number("--sms", text, 1, "a whole number of SMs");
            }};
}

}  // namespace kbench
